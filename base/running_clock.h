// A clock that stands still while this process does: under SIGSTOP, in a container that is frozen,
// on a machine that is moved to another host. What nobody had time for is then not held against
// anybody.
//
// Threads:  one.
// Limits:   a pause is known by a look that comes late, so that kLongestNs of each still count.
// Cost:     arithmetic only.
#pragma once

#include <algorithm>
#include <cstdint>

namespace penstock {

class RunningClock {
 public:
  // Time between two looks beyond what was meant to lie between them counts up to this.
  static constexpr int64_t kLongestNs = 250'000'000;

  // `monotonic_ns`: MonotonicNs().
  explicit RunningClock(int64_t monotonic_ns) : looked_at_ns_(monotonic_ns), ns_(monotonic_ns) {}

  // `meant_ns`: how long after the last look nothing was to be done. Returns the time so far: that
  // of the monotonic clock, less the pauses.
  int64_t Look(int64_t monotonic_ns, int64_t meant_ns = 0) {
    ns_ += std::min(monotonic_ns - looked_at_ns_, meant_ns + kLongestNs);
    looked_at_ns_ = monotonic_ns;
    return ns_;
  }

 private:
  int64_t looked_at_ns_;
  int64_t ns_;
};

}  // namespace penstock
