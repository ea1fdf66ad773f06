// The clock that never jumps: nanoseconds since some moment, which is the same in all processes of
// a machine until it is started again.
//
// Threads:  any.
#pragma once

#include <time.h>

#include <cstdint>

namespace penstock {

inline int64_t MonotonicNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * int64_t{1'000'000'000} + now.tv_nsec;
}

}  // namespace penstock
