// What both bare loops share besides records: flags, threads, the measured window and its line of
// JSON.
//
// Threads:  Measure() starts and joins its own.
// Owns:     nothing.
#pragma once

#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "bench/loop_records.h"

namespace penstock::bench {

struct LoopFlags {
  std::string files;
  std::string dtype = "float32";
  double seconds = 3;
  int threads = 2;
};

inline LoopFlags ParseFlags(int argc, char** argv, bool has_dtype) {
  LoopFlags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--files") {
      flags.files = value;
    } else if (name == "--seconds") {
      flags.seconds = std::atof(value.c_str());
    } else if (name == "--threads") {
      flags.threads = std::atoi(value.c_str());
    } else if (name == "--dtype" && has_dtype) {
      flags.dtype = value;
    } else {
      Die("unknown flag", name);
    }
  }
  if (flags.files.empty() || argc % 2 == 0 || flags.seconds <= 0 || flags.threads < 1 ||
      (flags.dtype != "float32" && flags.dtype != "float64")) {
    std::fprintf(stderr, "usage: %s --files GLOB %s[--seconds S] [--threads N]\n", argv[0],
                 has_dtype ? "[--dtype float32|float64] " : "");
    std::exit(2);
  }
  return flags;
}

// Memory for a private ring, in huge pages where the system gives them. Never freed.
inline uint8_t* AllocateRing(size_t bytes) {
  constexpr size_t kHuge = size_t{2} << 20;
  bytes = (bytes + kHuge - 1) / kHuge * kHuge;
  void* memory = nullptr;
  if (posix_memalign(&memory, kHuge, bytes) != 0) Die("cannot allocate", "a ring");
  madvise(memory, bytes, MADV_HUGEPAGE);
  std::memset(memory, 1, bytes);
  return static_cast<uint8_t*>(memory);
}

// A thread's count of finished examples, on a cache line of its own.
struct alignas(64) LoopCounter {
  std::atomic<uint64_t> examples{0};
  void Add(uint64_t count) {
    examples.store(examples.load(std::memory_order_relaxed) + count, std::memory_order_relaxed);
  }
};

struct LoopClock {
  double wall;
  double cpu;

  static LoopClock Now() {
    timespec wall;
    clock_gettime(CLOCK_MONOTONIC, &wall);
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return time.tv_sec + 1e-6 * time.tv_usec; };
    return {wall.tv_sec + 1e-9 * wall.tv_nsec, seconds(usage.ru_utime) + seconds(usage.ru_stime)};
  }
};

// Runs `work(thread, counter, stop)` on each thread and prints what it did in a window of the given
// length, half a second after the start.
inline void Measure(const LoopFlags& flags,
                    const std::function<void(int, LoopCounter&, const std::atomic<bool>&)>& work) {
  std::atomic<bool> stop{false};
  std::vector<LoopCounter> counters(flags.threads);
  std::vector<std::thread> threads;
  for (int i = 0; i < flags.threads; ++i) {
    threads.emplace_back([&, i] { work(i, counters[i], stop); });
  }
  const auto wait = [](double seconds) {
    timespec time{static_cast<time_t>(seconds),
                  static_cast<long>((seconds - static_cast<time_t>(seconds)) * 1e9)};
    nanosleep(&time, nullptr);
  };
  const auto count = [&] {
    uint64_t sum = 0;
    for (const LoopCounter& counter : counters)
      sum += counter.examples.load(std::memory_order_relaxed);
    return sum;
  };
  wait(0.5);
  const uint64_t first = count();
  const LoopClock start = LoopClock::Now();
  wait(flags.seconds);
  const uint64_t last = count();
  const LoopClock end = LoopClock::Now();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  const double examples = static_cast<double>(last - first);
  if (examples == 0) Die("no batch was finished in time", flags.files);
  std::printf("{\"examples_per_s\": %.1f, \"cpu_s_per_million\": %.6f, \"seconds\": %.3f}\n",
              examples / (end.wall - start.wall), (end.cpu - start.cpu) / examples * 1e6,
              end.wall - start.wall);
}

}  // namespace penstock::bench
