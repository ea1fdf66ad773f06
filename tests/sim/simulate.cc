// A long campaign of simulated histories: ./dev test sim [--seed S] [--histories N].
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>

#include "tests/sim/history.h"

int main(int argc, char** argv) {
  uint64_t seed = std::random_device()() * uint64_t{1000000};
  uint64_t histories = 100000;
  for (int i = 1; i < argc; i += 2) {
    char* end = nullptr;
    const uint64_t value = i + 1 < argc ? std::strtoull(argv[i + 1], &end, 10) : 0;
    if (end == nullptr || *end != '\0' || end == argv[i + 1]) {
      std::fprintf(stderr, "expected --seed S and --histories N, found %s\n", argv[i]);
      return 2;
    }
    if (std::strcmp(argv[i], "--seed") == 0) {
      seed = value;
    } else if (std::strcmp(argv[i], "--histories") == 0) {
      histories = value;
    } else {
      std::fprintf(stderr, "unknown option %s\n", argv[i]);
      return 2;
    }
  }
  std::printf("seeds %" PRIu64 " to %" PRIu64 "\n", seed, seed + histories - 1);
  constexpr uint64_t kAtOnce = 5000;
  penstock::test::HistoryReport total;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t done = 0; done < histories;) {
    const uint64_t count = histories - done < kAtOnce ? histories - done : kAtOnce;
    const std::string failure = penstock::test::RunHistories(seed + done, count, &total);
    if (!failure.empty()) {
      std::printf("FAILED: %s\n", failure.c_str());
      return 1;
    }
    done += count;
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::printf("%" PRIu64 " histories, %d lives, %" PRIu64
                " steps, %d ended by the disk, %.0f s\n",
                done, total.lives, total.steps, total.broken, seconds.count());
    std::fflush(stdout);
  }
  return 0;
}
