#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "server/engine/order/replayed_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/read/element_cells.h"
#include "server/engine/spec/drawn_seed.h"
#include "server/engine/stage/keyed_elements.h"

namespace penstock {
namespace {

struct Distributions {
  std::vector<double> target;
  std::vector<double> initial;  // empty: as far as it is known
};

// Hands on an element of class c with a probability in proportion to target[c] / initial[c], the
// greatest of which is 1. Draw i is that of the pass' element i.
class ResampleOp final : public ReplayedOrder {
 public:
  ResampleOp(FrontContext& context, std::string stage, Distributions distributions, uint64_t key,
             std::unique_ptr<OrderOp> input)
      : ReplayedOrder(context),
        stage_(std::move(stage)),
        distributions_(std::move(distributions)),
        key_(key),
        input_(std::move(input)),
        draws_(key, 0),
        seen_(distributions_.target.size(), 1) {}

  std::optional<uint64_t> Count() override { return std::nullopt; }
  uint32_t width() const override { return input_->width(); }
  absl::Status status() const override { return status_.ok() ? input_->status() : status_; }

 protected:
  Pulled Take(uint64_t count, RecordList& out, uint64_t* taken) override {
    while (*taken < count) {
      if (!status_.ok()) return Pulled::kFailed;
      if (context().interrupted()) return Pulled::kBlocked;
      incoming_.clear();
      uint64_t pulled = 0;
      const Pulled result = input_->Pull(count - *taken, incoming_, &pulled);
      for (const RecordRef& element : incoming_) {
        if (status_.ok() && Accepts(ElementCells::First(element))) {
          out.push_back(element);
          ++*taken;
        } else {
          context().store.Release({&element, 1});
        }
      }
      if (!status_.ok()) return Pulled::kFailed;
      if (result != Pulled::kSome) return result;
    }
    return Pulled::kSome;
  }

  void Begin(uint64_t epoch) override {
    draws_ = DrawSequence(key_, epoch);
    seen_.assign(distributions_.target.size(), 1);
    num_seen_ = 0;
    status_ = absl::OkStatus();
    input_->Restart(epoch);
  }

 private:
  bool Accepts(int64_t number) {
    const std::vector<double>& target = distributions_.target;
    if (number < 0 || static_cast<size_t>(number) >= target.size()) {
      status_ =
          absl::InvalidArgumentError(absl::StrCat("stage ", stage_, ": expected a class from 0 to ",
                                                  target.size() - 1, ", found ", number));
      return false;
    }
    seen_[number] += 1;
    const std::vector<double>& initial =
        distributions_.initial.empty() ? seen_ : distributions_.initial;
    double greatest = 0;
    for (size_t i = 0; i < target.size(); ++i) {
      if (initial[i] > 0) greatest = std::max(greatest, target[i] / initial[i]);
    }
    const double draw = draws_.Draw(num_seen_++) * 0x1p-32;
    // A class that should not be there at all is as frequent as it should be.
    if (initial[number] <= 0) return target[number] > 0;
    return draw * greatest < target[number] / initial[number];
  }

  const std::string stage_;
  const Distributions distributions_;
  const uint64_t key_;
  const std::unique_ptr<OrderOp> input_;
  DrawSequence draws_;
  std::vector<double> seen_;  // elements of each class
  uint64_t num_seen_ = 0;
  RecordList incoming_;
  absl::Status status_;
};

absl::Status CheckDistribution(const char* name, const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    if (!(value >= 0)) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ": expected at least 0 for each class, found ", value));
    }
    sum += value;
  }
  if (sum > 0 && std::isfinite(sum)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(name, ": expected a finite sum above 0, found ", sum));
}

const OpRegistration<v1::RejectionResample> kRejectionResample(
    "rejection_resample",
    {.seed = v1::RejectionResample::kSeedFieldNumber,
     .expressions = {v1::RejectionResample::kLetFieldNumber,
                     v1::RejectionResample::kClassFuncFieldNumber}},
    [](const v1::RejectionResample& options, PlanBuilder& plan) -> absl::Status {
      v1::RejectionResample& resolved = *plan.stage_spec().mutable_rejection_resample();
      if (!resolved.has_seed()) resolved.set_seed(DrawSeed());
      const uint64_t key = plan.DrawKey(resolved.seed());
      Distributions distributions;
      distributions.target.assign(options.target_dist().begin(), options.target_dist().end());
      distributions.initial.assign(options.initial_dist().begin(), options.initial_dist().end());
      absl::Status status = CheckDistribution("target_dist", distributions.target);
      if (status.ok() && !distributions.initial.empty()) {
        status = CheckDistribution("initial_dist", distributions.initial);
        if (distributions.initial.size() != distributions.target.size()) {
          status = absl::InvalidArgumentError(
              absl::StrCat("initial_dist: expected as many classes as target_dist has, ",
                           distributions.target.size(), ", found ", distributions.initial.size()));
        }
      }
      if (status.ok()) status = plan.EndBatches();
      if (!status.ok()) return status;
      absl::StatusOr<expr::MapSource> source =
          ReadMapSource(options.constant(), options.let(), plan);
      if (!source.ok()) return source.status();
      status = AddKeyAsPair(*source, "class_func", options.class_func(), plan);
      if (!status.ok()) return status;
      plan.AddOrder(
          [distributions, key, stage = plan.stage()](FrontContext& context, OrderInputs inputs) {
            return std::make_unique<ResampleOp>(context, stage, distributions, key,
                                                std::move(inputs[0]));
          },
          CursorClass::kReplayData);
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
