// How long servers take to the first byte, and with that, when a second request for the same bytes
// is worth its cost (a hedge).
//
// Threads:  one.
// Limits:   the last 64 times; hedges at most 5 % of requests.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace penstock {

class FirstBytes {
 public:
  void Took(int64_t ns) {
    times_[count_++ % times_.size()] = ns;
    median_ns_ = 0;
  }

  // 0 while none is known.
  int64_t MedianNs() {
    if (count_ == 0) return 0;
    if (median_ns_ == 0) {
      std::array<int64_t, kKept> sorted = times_;
      const size_t known = std::min(count_, sorted.size());
      std::nth_element(sorted.begin(), sorted.begin() + known / 2, sorted.begin() + known);
      median_ns_ = std::max<int64_t>(sorted[known / 2], 1);
    }
    return median_ns_;
  }

  // Three times the median, 100 ms at least; 0 while too few are known.
  int64_t HedgeAfterNs() {
    return count_ < kFew ? 0 : std::max<int64_t>(100'000'000, 3 * MedianNs());
  }

  static bool MayHedge(uint64_t hedges, uint64_t requests) {
    return 20 * (hedges + 1) <= requests + 20;
  }

 private:
  static constexpr size_t kKept = 64;
  static constexpr size_t kFew = 8;

  std::array<int64_t, kKept> times_{};
  size_t count_ = 0;
  int64_t median_ns_ = 0;
};

}  // namespace penstock
