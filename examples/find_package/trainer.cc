// Counts the rows of a pipeline:  trainer PIPELINE
#include <cstdio>

#include "penstock.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: trainer PIPELINE\n");
    return 2;
  }
  try {
    penstock::Loader loader(argv[1]);
    unsigned long long rows = 0;
    for (const penstock::Batch& batch : loader) rows += batch.rows();
    std::printf("%llu rows\n", rows);
  } catch (const penstock::Error& error) {
    std::fprintf(stderr, "trainer: %s\n", error.what());
    return 1;
  }
  return 0;
}
