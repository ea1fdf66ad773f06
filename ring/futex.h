// The kernel's futex on a word in memory that processes share. std::atomic::wait is of no use
// there: it hangs, because its futexes are private to a process.
//
// Threads:  any; waiting works on a mapping that is only readable.
// Cost:     a system call; a wake-up of an idle core costs its sender several microseconds.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace penstock::ring {

// The calls of this process on futexes of rings, waits and wake-ups: what shows that nobody calls
// while nobody sleeps.
inline std::atomic<uint64_t> num_futex_calls{0};

inline uint64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

// A hint to the core that this is a spin.
inline void SpinPause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Sleeps while the word is `expected`, until a wake-up whose mask shares a bit with `mask`, a
// signal, or `deadline_ns` (CLOCK_MONOTONIC).
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected, uint32_t mask,
                      uint64_t deadline_ns) {
  num_futex_calls.fetch_add(1, std::memory_order_relaxed);
  timespec deadline;
  deadline.tv_sec = static_cast<time_t>(deadline_ns / 1'000'000'000);
  deadline.tv_nsec = static_cast<long>(deadline_ns % 1'000'000'000);
  syscall(SYS_futex, &word, FUTEX_WAIT_BITSET, expected, &deadline, nullptr, mask);
}

// Wakes every waiter whose mask shares a bit with `mask`.
inline void FutexWake(const std::atomic<uint32_t>& word, uint32_t mask) {
  num_futex_calls.fetch_add(1, std::memory_order_relaxed);
  syscall(SYS_futex, &word, FUTEX_WAKE_BITSET, INT_MAX, nullptr, nullptr, mask);
}

}  // namespace penstock::ring
