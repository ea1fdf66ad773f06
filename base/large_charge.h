// What the lists and strings of one row have taken of its pipeline's memory where they are large:
// most are small, and are gone with the row.
//
// Threads:  one; nobody else has the lists.
// Owns:     what it has taken, until it goes.
// Cost:     nothing below kLargeBytes; beyond, that of MemoryCharge.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/memory_charge.h"

namespace penstock {

class LargeCharge {
 public:
  static constexpr uint64_t kLargeBytes = uint64_t{1} << 20;

  // Throws MemoryLimitError, with nothing taken.
  void Add(uint64_t bytes) {
    bytes_ += bytes;
    if (bytes_ <= kLargeBytes) return;
    if (!charge_) charge_.emplace();
    charge_->Add(bytes_ - taken_);
    taken_ = bytes_;
  }

  // Room for `more` further elements of a vector or string, all of whose memory is of this charge.
  template <typename List>
  void MakeRoom(List& list, uint64_t more) {
    if (more <= list.capacity() - list.size()) return;
    const uint64_t capacity = std::max<uint64_t>(list.size() + more, 2 * list.capacity());
    Add((capacity - list.capacity()) * sizeof(list[0]));
    list.reserve(capacity);
  }

 private:
  uint64_t bytes_ = 0;
  uint64_t taken_ = 0;  // of them, by the charge
  std::optional<MemoryCharge> charge_;
};

}  // namespace penstock
