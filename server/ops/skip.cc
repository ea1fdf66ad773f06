#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

// Elements left out at a time, so that what is pulled for nothing stays small.
constexpr uint64_t kStride = 256;

class SkipOp final : public ChainedOrderOp {
 public:
  SkipOp(FrontContext& context, std::unique_ptr<OrderOp> input, uint64_t count)
      : ChainedOrderOp(std::move(input)), context_(context), count_(count), left_(count) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (left_ > 0) {
      uint64_t skipped = 0;
      const Pulled result = input().Pull(std::min(left_, kStride), skipped_, &skipped);
      left_ -= skipped;
      // A batch of which only a part has arrived is released with its other records, which follow.
      if (result != Pulled::kBlocked) ReleaseSkipped();
      if (result != Pulled::kSome) return result;
    }
    return input().Pull(count, out, pulled);
  }

  void Restart(uint64_t epoch) override {
    ReleaseSkipped();
    left_ = count_;
    ChainedOrderOp::Restart(epoch);
  }

 private:
  void ReleaseSkipped() {
    context_.store.Release(skipped_);
    skipped_.clear();
  }

  FrontContext& context_;
  const uint64_t count_;
  uint64_t left_;
  RecordList skipped_;
};

const OpRegistration<v1::Skip> kSkip(
    "skip", [](const v1::Skip& options, PlanBuilder& plan) -> absl::Status {
      if (options.count() < -1)
        return absl::InvalidArgumentError(
            absl::StrCat("count: expected -1 (all) or at least 0, found ", options.count()));
      const uint64_t count =
          options.count() == -1 ? std::numeric_limits<uint64_t>::max() : options.count();
      plan.AddOrder([count](FrontContext& context, std::unique_ptr<OrderOp> input) {
        return std::make_unique<SkipOp>(context, std::move(input), count);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
