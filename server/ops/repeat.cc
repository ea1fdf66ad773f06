#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

class RepeatOp final : public ChainedOrderOp {
 public:
  // No count: without end.
  RepeatOp(FrontContext& context, std::unique_ptr<OrderOp> input, std::optional<uint64_t> count)
      : ChainedOrderOp(std::move(input)), context_(context), count_(count) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    while (*pulled < count) {
      if (count_ && pass_ == *count_) return Pulled::kEnd;
      if (out.empty()) context_.epoch = first_epoch_ + pass_;
      const uint64_t before = *pulled;
      const Pulled result = input().Pull(count, out, pulled);
      pulled_of_pass_ += *pulled - before;
      if (result == Pulled::kBlocked || result == Pulled::kFailed) return result;
      if (result == Pulled::kEnd) {
        // A pass without elements is followed by no other: an endless repeat of nothing would never
        // return.
        if (pulled_of_pass_ == 0) return Pulled::kEnd;
        pulled_of_pass_ = 0;
        ++pass_;
        if (!count_ || pass_ < *count_) input().Restart(first_epoch_ + pass_);
      }
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    // Passes of a repeat inside a repeat are numbered on, so that no two draw alike.
    first_epoch_ = count_ ? epoch * *count_ : epoch;
    pass_ = 0;
    pulled_of_pass_ = 0;
    ChainedOrderOp::Restart(first_epoch_);
  }

 private:
  FrontContext& context_;
  const std::optional<uint64_t> count_;
  uint64_t first_epoch_ = 0;
  uint64_t pass_ = 0;
  uint64_t pulled_of_pass_ = 0;
};

const OpRegistration<v1::Repeat> kRepeat(
    "repeat", [](const v1::Repeat& options, PlanBuilder& plan) -> absl::Status {
      std::optional<uint64_t> count;
      if (options.has_count() && options.count() != -1) {
        if (options.count() < 0)
          return absl::InvalidArgumentError(absl::StrCat(
              "count: expected -1 (without end) or at least 0, found ", options.count()));
        count = options.count();
      }
      if (!count) plan.SetEndless(true);
      plan.AddOrder([count](FrontContext& context, std::unique_ptr<OrderOp> input) {
        return std::make_unique<RepeatOp>(context, std::move(input), count);
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
