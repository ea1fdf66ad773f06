// A daemon without pipelines that publishes the batches of tests/support/all_kinds.h.
//
//   kinds_server SOCKET [--steps N] [--rows N] [--last-rows N] [--last-valid N]
//   [--slots N]
//   [--structure JSON]
//
// The pipeline is called "kinds". It prints "ready" when it listens, and ends when its standard
// input is closed.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "tests/support/all_kinds.h"
#include "tests/support/attach_server.h"
#include "tests/support/given_options.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: kinds_server SOCKET [--OPTION VALUE]...\n");
    return 2;
  }
  const penstock::GivenOptions given(argc, argv);
  const uint64_t steps = given.Number("--steps", UINT64_MAX);
  const uint32_t rows = static_cast<uint32_t>(given.Number("--rows", 5));
  const uint32_t last_rows = static_cast<uint32_t>(given.Number("--last-rows", rows));
  const uint32_t last_valid = static_cast<uint32_t>(given.Number("--last-valid", last_rows));
  penstock::ring::SegmentOptions options = penstock::AllKindsRing(rows);
  options.slots = static_cast<uint32_t>(given.Number("--slots", 3));
  options.structure = given.Text("--structure");
  std::unique_ptr<penstock::ring::Writer> writer;
  if (auto status = penstock::ring::Writer::Create(options, &writer); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 1;
  }
  penstock::AttachServer server(writer.get(), options.pipeline, argv[1]);
  if (!server.Start()) {
    std::perror(argv[1]);
    return 1;
  }
  std::atomic<bool> stop{false};
  std::thread producer([&] {
    for (uint64_t step = 0; step < steps && !stop; ++step) {
      int slot;
      while ((slot = writer->TryClaim()) < 0) {
        if (stop) return;
        writer->WaitForRelease(UINT64_MAX);
      }
      const bool is_last = step + 1 == steps;
      penstock::PublishAllKinds(writer.get(), slot, step, is_last ? last_rows : rows,
                                is_last ? std::optional(last_valid) : std::nullopt);
    }
    if (!stop) writer->Finish(penstock::ring::Code::kOk, "");
  });
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  stop = true;
  writer->Interrupt();
  producer.join();
  return 0;
}
