// The counters of the order ops of a running pipeline: what a cursor holds of it.
//
// Every op adds its own and then has its inputs add theirs, unless theirs follow from its own; it
// takes them back in the same order.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace penstock {

class Position {
 public:
  Position() = default;
  explicit Position(std::vector<uint64_t> counters) : counters_(std::move(counters)) {}

  void Add(uint64_t counter) { counters_.push_back(counter); }

  // The next counter. Behind the last one it is 0 and complete() false for ever.
  uint64_t Take() {
    if (next_ == counters_.size()) {
      missing_ = true;
      return 0;
    }
    return counters_[next_++];
  }

  // Whether all counters have been taken, and no more than there were.
  bool complete() const { return next_ == counters_.size() && !missing_; }

  const std::vector<uint64_t>& counters() const { return counters_; }
  void Clear() {
    counters_.clear();
    next_ = 0;
    missing_ = false;
  }

 private:
  std::vector<uint64_t> counters_;
  size_t next_ = 0;
  bool missing_ = false;
};

}  // namespace penstock
