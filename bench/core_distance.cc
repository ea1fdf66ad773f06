// How far the caches of two processors lie apart: the time that a line takes which one of them
// writes and the other one waits for. On a virtual machine it changes while it runs, as the host
// moves its processors, and figures of whatever shares memory with it.
//
//   bench_core_distance
//
// Prints {"one_way_ns": …}: the least of some rounds, which no interruption lengthens.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <thread>

#include "base/tick_clock.h"

namespace {

constexpr int kRounds = 20;
constexpr int kTurns = 2000;

struct alignas(64) Line {
  std::atomic<int> value{0};
};

void WaitFor(const Line& line, int value) {
  while (line.value.load(std::memory_order_acquire) != value) {
  }
}

}  // namespace

int main() {
  if (std::thread::hardware_concurrency() < 2) {
    std::fprintf(stderr, "bench_core_distance: this machine has one processor\n");
    return 1;
  }
  Line there, back;
  std::thread other([&] {
    for (int turn = 1; turn <= kRounds * kTurns; ++turn) {
      WaitFor(there, turn);
      back.value.store(turn, std::memory_order_release);
    }
  });
  double least = std::numeric_limits<double>::infinity();
  int turn = 0;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t start = penstock::MonotonicNanos();
    for (int i = 0; i < kTurns; ++i) {
      there.value.store(++turn, std::memory_order_release);
      WaitFor(back, turn);
    }
    const uint64_t passed = penstock::MonotonicNanos() - start;
    least = std::min(least, static_cast<double>(passed) / (2.0 * kTurns));
  }
  other.join();
  std::printf("{\"one_way_ns\": %.0f}\n", least);
  return 0;
}
