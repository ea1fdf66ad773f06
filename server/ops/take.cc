#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

class TakeOp final : public ChainedOrderOp {
 public:
  TakeOp(std::unique_ptr<OrderOp> input, uint64_t count)
      : ChainedOrderOp(std::move(input)), count_(count), left_(count) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    const uint64_t before = *pulled;
    const Pulled result = input().Pull(before + std::min(count - before, left_), out, pulled);
    left_ -= *pulled - before;
    return result == Pulled::kSome && *pulled < count ? Pulled::kEnd : result;
  }

  void Restart(uint64_t epoch) override {
    left_ = count_;
    ChainedOrderOp::Restart(epoch);
  }

 private:
  const uint64_t count_;
  uint64_t left_;
};

const OpRegistration<v1::Take> kTake(
    "take", [](const v1::Take& options, PlanBuilder& plan) -> absl::Status {
      if (options.count() < -1)
        return absl::InvalidArgumentError(
            absl::StrCat("count: expected -1 (all) or at least 0, found ", options.count()));
      if (options.count() == -1) return absl::OkStatus();
      plan.SetEndless(false);
      plan.AddOrder([count = options.count()](FrontContext&, std::unique_ptr<OrderOp> input) {
        return std::make_unique<TakeOp>(std::move(input), count);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
