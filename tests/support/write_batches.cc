// Takes a pipeline's batches, prints the line of each and writes it as DIR/STEP.npz, as
// `penstock run` does, but from any ring:
//
//   write_batches SOCKET PIPELINE DIR
#include <cstdio>
#include <string>

#include "client/ctl/batches/batch_line.h"
#include "client/ctl/batches/npz.h"
#include "penstock.hpp"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: write_batches SOCKET PIPELINE DIR\n");
    return 2;
  }
  penstock::Loader loader(argv[2], argv[1]);
  for (const penstock::Batch& batch : loader) {
    std::puts(penstock::ctl::BatchLine(batch).c_str());
    const std::string path = argv[3] + std::string("/") + std::to_string(batch.step()) + ".npz";
    if (const absl::Status status = penstock::ctl::WriteNpz(path, batch); !status.ok()) {
      std::fprintf(stderr, "%s\n", status.ToString().c_str());
      return 1;
    }
  }
  return 0;
}
