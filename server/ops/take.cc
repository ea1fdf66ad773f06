#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// Its position: how many elements may still come, and its input's.
class TakeOp final : public ChainedOrderOp {
 public:
  TakeOp(std::unique_ptr<OrderOp> input, uint64_t count)
      : ChainedOrderOp(std::move(input)), count_(count), left_(count) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    if (left_ == 0) return *pulled < count ? Pulled::kEnd : Pulled::kSome;
    const uint64_t before = *pulled;
    const Pulled result = input().Pull(before + std::min(count - before, left_), out, pulled);
    left_ -= *pulled - before;
    return result == Pulled::kSome && *pulled < count ? Pulled::kEnd : result;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    if (left_ == 0) return *skipped < count ? Pulled::kEnd : Pulled::kSome;
    const uint64_t before = *skipped;
    const Pulled result = input().Skip(before + std::min(count - before, left_), skipped);
    left_ -= *skipped - before;
    return result == Pulled::kSome && *skipped < count ? Pulled::kEnd : result;
  }

  void Restart(uint64_t epoch) override {
    left_ = count_;
    ChainedOrderOp::Restart(epoch);
  }

  void Save(Position& position) const override {
    position.Add(left_);
    ChainedOrderOp::Save(position);
  }

  absl::Status Restore(Position& position) override {
    left_ = std::min(position.Take(), count_);
    return ChainedOrderOp::Restore(position);
  }

  std::optional<uint64_t> Count() override {
    const std::optional<uint64_t> count = input().Count();
    return count ? std::optional(std::min(*count, count_)) : std::nullopt;
  }

 private:
  const uint64_t count_;
  uint64_t left_;
};

const OpRegistration<v1::Take> kTake(
    "take", {.gives = Given::kFirstOnes, .keeps_elements = false},
    [](const v1::Take& options, PlanBuilder& plan) -> absl::Status {
      if (options.count() < -1)
        return absl::InvalidArgumentError(
            absl::StrCat("count: expected -1 (all) or at least 0, found ", options.count()));
      if (options.count() == -1) return absl::OkStatus();
      if (absl::Status status = plan.LeaveOutFailures(); !status.ok()) return status;
      plan.SetEndless(false);
      plan.AddOrder([count = options.count()](FrontContext&, OrderInputs inputs) {
        return std::make_unique<TakeOp>(std::move(inputs[0]), count);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
