// What order ops have in common whose state is a matter of all elements before: their position is
// the pass and the number of elements that have been taken in it, and going there computes the pass
// again up to that place.
//
// Threads: one at a time (the front's lock).
#pragma once

#include <algorithm>
#include <cstdint>

#include "server/engine/order/order_op.h"

namespace penstock {

class ReplayedOrder : public OrderOp {
 public:
  explicit ReplayedOrder(FrontContext& context) : context_(context) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) final {
    if (const Pulled result = GoToPosition(); result != Pulled::kSome) return result;
    const uint64_t before = *pulled;
    const Pulled result = Take(count, out, pulled);
    taken_ += *pulled - before;
    return result;
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) final {
    return SkipByPulling(*this, context_, count, skipped);
  }
  void Restart(uint64_t epoch) final {
    epoch_ = epoch;
    taken_ = resume_at_ = 0;
    Begin(epoch);
  }
  void Save(Position& position) const final {
    position.Add(epoch_);
    position.Add(taken_ + resume_at_);
  }
  absl::Status Restore(Position& position) final {
    Restart(position.Take());
    resume_at_ = position.Take();
    return absl::OkStatus();
  }

 protected:
  // As Pull() and Restart(), without a thought of the position.
  virtual Pulled Take(uint64_t count, RecordList& out, uint64_t* taken) = 0;
  virtual void Begin(uint64_t epoch) = 0;

  FrontContext& context() { return context_; }
  uint64_t epoch() const { return epoch_; }

 private:
  static constexpr uint64_t kDroppedAtOnce = 64;

  Pulled GoToPosition() {
    while (resume_at_ > 0) {
      if (context_.interrupted()) return Pulled::kBlocked;
      uint64_t taken = 0;
      dropped_.clear();
      const Pulled result = Take(std::min(resume_at_, kDroppedAtOnce), dropped_, &taken);
      context_.store.Release(dropped_);
      resume_at_ -= taken;
      taken_ += taken;
      // A stream that is shorter than the cursor said would be one of other files.
      if (result == Pulled::kEnd) resume_at_ = 0;
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
    }
    return Pulled::kSome;
  }

  FrontContext& context_;
  uint64_t epoch_ = 0;
  uint64_t taken_ = 0;      // in this pass
  uint64_t resume_at_ = 0;  // elements to leave out before the next one
  RecordList dropped_;
};

}  // namespace penstock
