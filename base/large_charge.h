// What the lists and strings of one row have taken of its pipeline's memory where they are large:
// most are small, and are gone with the row.
//
// Threads:  one; nobody else has the lists.
// Owns:     what it has taken, until it goes.
// Cost:     nothing below kLargeBytes; beyond, that of MemoryCharge.
#pragma once

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

  // As ChargeRoom().
  template <typename List>
  void MakeRoom(List& list, uint64_t more) {
    ChargeRoom(list, more, *this);
  }

 private:
  uint64_t bytes_ = 0;
  uint64_t taken_ = 0;  // of them, by the charge
  std::optional<MemoryCharge> charge_;
};

}  // namespace penstock
