// How far the segments of one front run ahead of it, in bytes. Each of them has an equal part of a fixed sum. Beyond it a segment has as many
// blocks ahead as are its part of the workers, at least one: each worker has the memory of a block in its hands anyway, and none is to wait.
//
// Threads:  Join() and Leave() one at a time (the front's lock); set_workers() and the rest from any.
// Limits:   kBytes, or a block for each worker and one for each segment, where those are more.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock {

class SegmentsAhead {
 public:
  static constexpr uint64_t kBytes = uint64_t{256} << 20;

  void Join() { segments_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() { segments_.fetch_sub(1, std::memory_order_relaxed); }
  void set_workers(int workers) { workers_.store(workers, std::memory_order_relaxed); }

  // Of one segment. REQUIRES: it has joined.
  uint64_t bytes() const { return kBytes / segments(); }
  // Blocks that it may have ahead whatever their bytes.
  size_t blocks() const {
    const auto workers = static_cast<size_t>(std::max(1, workers_.load(std::memory_order_relaxed)));
    return (workers + segments() - 1) / segments();
  }

 private:
  size_t segments() const { return segments_.load(std::memory_order_relaxed); }

  std::atomic<size_t> segments_{0};
  std::atomic<int> workers_{1};
};

}  // namespace penstock
