#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

// Counts the elements of a pass. Its position: their number, and its input's.
class AssertCardinalityOp final : public ChainedOrderOp {
 public:
  AssertCardinalityOp(FrontContext& context, std::string stage, uint64_t expected,
                      std::unique_ptr<OrderOp> input)
      : ChainedOrderOp(std::move(input)),
        context_(context),
        stage_(std::move(stage)),
        expected_(expected) {}

  Pulled Pull(uint64_t count, RecordList& out, uint64_t* pulled) override {
    return Go(count, pulled, [&](uint64_t target) { return input().Pull(target, out, pulled); });
  }
  Pulled Skip(uint64_t count, uint64_t* skipped) override {
    return Go(count, skipped, [&](uint64_t target) { return input().Skip(target, skipped); });
  }

  void Restart(uint64_t epoch) override {
    context_.store.Release(beyond_);
    beyond_.clear();
    taken_ = 0;
    status_ = absl::OkStatus();
    ChainedOrderOp::Restart(epoch);
  }
  void Save(Position& position) const override {
    position.Add(taken_);
    ChainedOrderOp::Save(position);
  }
  absl::Status Restore(Position& position) override {
    taken_ = std::min(position.Take(), expected_);
    return ChainedOrderOp::Restore(position);
  }
  std::optional<uint64_t> Count() override { return expected_; }
  absl::Status status() const override { return status_.ok() ? ChainedOrderOp::status() : status_; }

 private:
  template <typename Ask>
  Pulled Go(uint64_t count, uint64_t* done, const Ask& ask) {
    if (!status_.ok()) return Pulled::kFailed;
    const uint64_t before = *done;
    const uint64_t target = before + std::min(count - before, expected_ - taken_);
    Pulled result = target > before ? ask(target) : Pulled::kSome;
    taken_ += *done - before;
    // Behind the last one there is none.
    if (result == Pulled::kSome && *done < count) result = LookBeyond();
    if (result != Pulled::kEnd || taken_ == expected_) return result;
    return Fail(absl::StrCat(taken_));
  }

  Pulled LookBeyond() {
    uint64_t more = 0;
    const Pulled result = input().Pull(1, beyond_, &more);
    if (result != Pulled::kSome) return result;
    context_.store.Release(beyond_);
    beyond_.clear();
    return Fail("more");
  }

  Pulled Fail(const std::string& found) {
    const std::string expected =
        expected_ == kEndless ? "no end" : absl::StrCat(expected_, " elements");
    status_ = absl::FailedPreconditionError(
        absl::StrCat("stage ", stage_, ": expected ", expected, ", found ", found));
    return Pulled::kFailed;
  }

  FrontContext& context_;
  const std::string stage_;
  const uint64_t expected_;
  uint64_t taken_ = 0;
  RecordList beyond_;
  absl::Status status_;
};

const OpRegistration<v1::AssertCardinality> kAssertCardinality(
    "assert_cardinality",
    {.gives = Given::kOneEach, .keeps_elements = false, .counts_failures = true},
    [](const v1::AssertCardinality& options, PlanBuilder& plan) -> absl::Status {
      if (options.cardinality() < -1) {
        return absl::InvalidArgumentError(absl::StrCat(
            "cardinality: expected -1 (without end) or at least 0, found ", options.cardinality()));
      }
      const uint64_t expected = options.cardinality() == -1
                                    ? OrderOp::kEndless
                                    : static_cast<uint64_t>(options.cardinality());
      plan.SetEndless(expected == OrderOp::kEndless);
      plan.AddOrder([expected, stage = plan.stage()](FrontContext& context, OrderInputs inputs) {
        return std::make_unique<AssertCardinalityOp>(context, stage, expected,
                                                     std::move(inputs[0]));
      });
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
