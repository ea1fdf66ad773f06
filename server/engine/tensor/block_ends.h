// The grains of a step that nobody has taken yet: a range, from whose two ends workers take their
// blocks.
//
// Workers that keep to their end write the same part of a slot each time that it comes round, so
// that its lines stay in their own core's cache. Where the cores' caches lie far apart, a line that
// another core wrote costs several times as much.
//
// Threads:  Reset() before others know of the step; Take() from any thread, of no more than there
//           are.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock {

class BlockEnds {
 public:
  void Reset(uint32_t grains) { range_.store(Range(0, grains), std::memory_order_relaxed); }

  // The first of the `count` grains that are left at one end.
  uint32_t Take(uint32_t count, bool from_back) {
    uint64_t range = range_.load(std::memory_order_relaxed);
    while (true) {
      const auto first = static_cast<uint32_t>(range), end = static_cast<uint32_t>(range >> 32);
      const uint64_t rest = from_back ? Range(first, end - count) : Range(first + count, end);
      if (range_.compare_exchange_weak(range, rest, std::memory_order_relaxed))
        return from_back ? end - count : first;
    }
  }

 private:
  static uint64_t Range(uint32_t first, uint32_t end) { return uint64_t{end} << 32 | first; }

  std::atomic<uint64_t> range_{0};
};

}  // namespace penstock
