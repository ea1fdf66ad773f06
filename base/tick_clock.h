// The cheapest monotonic clock of the machine, for statistics of the data path: about 10 ns a
// reading. Ticks become nanoseconds only when somebody looks, by comparison with CLOCK_MONOTONIC.
//
// Threads:  any.
#pragma once

#include <cstdint>
#include <ctime>

#if defined(__x86_64__)
#include <x86intrin.h>
#endif

namespace penstock {

inline uint64_t MonotonicNanos() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return uint64_t(now.tv_sec) * 1'000'000'000 + uint64_t(now.tv_nsec);
}

inline uint64_t Ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return MonotonicNanos();
#endif
}

// Constant after construction.
class TickScale {
 public:
  TickScale() : ticks_(Ticks()), nanos_(MonotonicNanos()) {}
  // What `ticks` of a duration are in nanoseconds, measured over the time since construction.
  uint64_t ToNanos(uint64_t ticks) const {
    const double ticks_passed = static_cast<double>(Ticks() - ticks_);
    const double nanos_passed = static_cast<double>(elapsed_ns());
    return ticks_passed > 0 ? static_cast<uint64_t>(ticks * (nanos_passed / ticks_passed)) : 0;
  }
  uint64_t elapsed_ns() const { return MonotonicNanos() - nanos_; }

 private:
  uint64_t ticks_;
  uint64_t nanos_;
};

}  // namespace penstock
