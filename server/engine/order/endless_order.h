// The order of a source without end whose elements are numbered: element i is whatever a function
// makes of i and the pass.
//
// Threads:  one at a time (the front's lock).
// Cost:     any position is at hand at once; a position is the pass and one counter.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "server/engine/order/order_op.h"

namespace penstock {

// `Numbers` has `uint64_t operator()(uint64_t i)`, the `offset` of element i's reference, and
// `void Restart(uint64_t epoch)`.
template <typename Numbers>
class EndlessOrder final : public OrderOp {
 public:
  EndlessOrder(Numbers numbers, uint32_t file) : numbers_(std::move(numbers)), file_(file) {
    Restart(0);
  }

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    for (; *pulled < count; ++*pulled) out.push_back({nullptr, numbers_(next_++), 0, file_, 0});
    return Pulled::kSome;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    next_ += count - *skipped;
    *skipped = count;
    return Pulled::kSome;
  }
  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    next_ = 0;
    numbers_.Restart(epoch);
  }
  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(next_);
  }
  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    next_ = position.Take();
    return absl::OkStatus();
  }
  std::optional<uint64_t> Count() override { return kEndless; }
  uint32_t width() const override { return 1; }
  absl::Status status() const override { return absl::OkStatus(); }

 private:
  Numbers numbers_;
  const uint32_t file_;
  uint64_t epoch_ = 0;
  uint64_t next_ = 0;
};

}  // namespace penstock
