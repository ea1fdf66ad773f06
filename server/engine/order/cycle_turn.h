// Whose turn it is in a cycle of places, each of which gives up to block_length elements before the
// turn passes on.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace penstock {

class CycleTurn {
 public:
  // REQUIRES: places > 0, block_length > 0.
  CycleTurn(size_t places, uint64_t block_length) : places_(places), block_length_(block_length) {}

  size_t place() const { return place_; }
  // Elements that it has given in this turn.
  uint64_t taken() const { return taken_; }
  // How many of so many elements it may give.
  uint64_t Share(uint64_t count) const { return std::min(count, block_length_ - taken_); }
  void Take(uint64_t elements) { taken_ += elements; }
  bool is_over() const { return taken_ == block_length_; }
  void PassOn() { Set(place_ + 1 == places_ ? 0 : place_ + 1, 0); }

  // Whether there is such a turn; otherwise it is the first.
  bool Set(uint64_t place, uint64_t taken) {
    const bool valid = place < places_ && taken < block_length_;
    place_ = valid ? place : 0;
    taken_ = valid ? taken : 0;
    return valid;
  }

 private:
  const size_t places_;
  const uint64_t block_length_;
  size_t place_ = 0;
  uint64_t taken_ = 0;
};

}  // namespace penstock
