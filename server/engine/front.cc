#include "server/engine/front.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// Charges an op's time, but for its input's, to its stage and counts what leaves it.
class MeasuredOrderOp final : public OrderOp {
 public:
  MeasuredOrderOp(std::unique_ptr<OrderOp> op, int stage, StageClock* const& clock)
      : op_(std::move(op)), stage_(stage), clock_(clock) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    StageClock::Scope scope(*clock_, stage_);
    const uint64_t before = *pulled;
    const Pulled result = op_->Pull(count, out, pulled);
    clock_->Count(stage_, *pulled - before);
    return result;
  }
  void Restart(uint64_t epoch) override { op_->Restart(epoch); }
  absl::Status status() const override { return op_->status(); }

 private:
  const std::unique_ptr<OrderOp> op_;
  const int stage_;
  StageClock* const& clock_;  // changes with the worker that runs the front
};

}  // namespace

Front::Front(const PlanImpl& plan, RecordStore& store, ReadQueue& reads) : context_{store, reads} {
  for (const PlannedOrder& planned : plan.order()) {
    last_ = std::make_unique<MeasuredOrderOp>(planned.make(context_, std::move(last_)),
                                              planned.stage, clock_);
  }
}

Pulled Front::Assemble(Step* step) {
  uint64_t pulled = 0;
  const Pulled result = last_->Pull(1, step->records, &pulled);
  if (result == Pulled::kSome) {
    step->info.epoch = context_.epoch;
    step->info.rows = step->records.size();
  } else if (result != Pulled::kBlocked) {
    Release(step);
  }
  return result;
}

absl::Status Front::status() const { return last_->status(); }

void Front::Release(Step* step) {
  context_.store.Release(step->records);
  step->records.clear();
}

}  // namespace penstock
