// How far the sections of one front run ahead of it, in bytes. Each of them has an equal part of a
// fixed sum. Beyond it a section has as many blocks ahead as are its part of the workers, at least
// one: each worker has the memory of a block in its hands anyway, and none is to wait.
//
// Threads:  Join() and Leave() one at a time (the front's lock); set_workers() and the rest from
//           any.
// Limits:   kBytes, or a block for each worker and one for each section, where those are more.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace penstock {

class SectionsAhead {
 public:
  static constexpr uint64_t kBytes = uint64_t{256} << 20;

  void Join() { sections_.fetch_add(1, std::memory_order_relaxed); }
  void Leave() { sections_.fetch_sub(1, std::memory_order_relaxed); }
  void set_workers(int workers) { workers_.store(workers, std::memory_order_relaxed); }

  // Of one section. REQUIRES: it has joined.
  uint64_t bytes() const { return kBytes / sections(); }
  // Blocks that it may have ahead whatever their bytes.
  size_t blocks() const {
    const auto workers = static_cast<size_t>(std::max(1, workers_.load(std::memory_order_relaxed)));
    return (workers + sections() - 1) / sections();
  }

 private:
  size_t sections() const { return sections_.load(std::memory_order_relaxed); }

  std::atomic<size_t> sections_{0};
  std::atomic<int> workers_{1};
};

}  // namespace penstock
