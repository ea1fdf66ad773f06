#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// Its position: how many elements are still to be left out, and its input's.
class SkipOp final : public ChainedOrderOp {
 public:
  // Nothing is left: the input, which may have no end, is not asked at all.
  static constexpr uint64_t kAll = UINT64_MAX;

  SkipOp(std::unique_ptr<OrderOp> input, uint64_t count)
      : ChainedOrderOp(std::move(input)), count_(count), left_(count) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    const Pulled result = LeaveOut();
    return result == Pulled::kSome ? input().Pull(count, out, pulled) : result;
  }

  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    const Pulled result = LeaveOut();
    return result == Pulled::kSome ? input().Skip(count, skipped) : result;
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
    if (count_ == kAll) return 0;
    const std::optional<uint64_t> count = input().Count();
    if (!count || *count == kEndless) return count;
    return *count - std::min(*count, count_);
  }

 private:
  Pulled LeaveOut() {
    if (count_ == kAll) return Pulled::kEnd;
    if (left_ == 0) return Pulled::kSome;
    uint64_t skipped = 0;
    const Pulled result = input().Skip(left_, &skipped);
    left_ -= skipped;
    return result;
  }

  const uint64_t count_;
  uint64_t left_;  // to be left out in this pass
};

const OpRegistration<v1::Skip> kSkip(
    "skip", {.keeps_elements = false},
    [](const v1::Skip& options, PlanBuilder& plan) -> absl::Status {
      if (options.count() < -1)
        return absl::InvalidArgumentError(
            absl::StrCat("count: expected -1 (all) or at least 0, found ", options.count()));
      if (options.count() > 0) {
        // Of batches that cannot be elements the failing rows are left out in front of them
        // already.
        absl::Status status = plan.LeaveOutFailures();
        if (!status.ok() && !plan.batched()) return status;
      }
      const uint64_t count = options.count() == -1 ? SkipOp::kAll : options.count();
      if (count == SkipOp::kAll) plan.SetEndless(false);
      plan.AddOrder([count](FrontContext&, OrderInputs inputs) {
        return std::make_unique<SkipOp>(std::move(inputs[0]), count);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
