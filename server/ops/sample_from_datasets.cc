#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "server/engine/order/directed_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/section/like_elements.h"
#include "server/engine/spec/drawn_seed.h"

namespace penstock {
namespace {

// Draws among the inputs that have elements left, by their weights. Its position: the pass and the
// number of draws.
class WeightedChooser final : public Chooser {
 public:
  WeightedChooser(std::vector<double> weights, uint64_t key, bool rerandomize)
      : weights_(std::move(weights)), key_(key), rerandomize_(rerandomize), draws_(key, 0) {}

  Pulled Next(const std::vector<bool>& ended, uint64_t* input) override {
    double total = 0;
    for (size_t i = 0; i < weights_.size(); ++i) total += ended[i] ? 0 : weights_[i];
    if (total == 0) return Pulled::kEnd;
    double left = draws_.Draw(num_draws_++) * 0x1p-32 * total;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (ended[i] || weights_[i] == 0) continue;
      // What rounding leaves over belongs to the last of them.
      *input = i;
      left -= weights_[i];
      if (left < 0) break;
    }
    return Pulled::kSome;
  }

  void Restart(uint64_t epoch) override {
    epoch_ = epoch;
    num_draws_ = 0;
    draws_ = DrawSequence(key_, rerandomize_ ? epoch : 0);
  }
  void Save(Position& position) const override {
    position.Add(epoch_);
    position.Add(num_draws_);
  }
  absl::Status Restore(Position& position) override {
    Restart(position.Take());
    num_draws_ = position.Take();
    return absl::OkStatus();
  }
  std::optional<bool> TakesAll(size_t input) const override { return weights_[input] > 0; }

 private:
  const std::vector<double> weights_;
  const uint64_t key_;
  const bool rerandomize_;
  DrawSequence draws_;
  uint64_t epoch_ = 0;
  uint64_t num_draws_ = 0;
};

absl::StatusOr<std::vector<double>> ReadWeights(const v1::SampleFromDatasets& options,
                                                size_t num_inputs) {
  if (options.weight().empty()) return std::vector<double>(num_inputs, 1.0);
  std::vector<double> weights(options.weight().begin(), options.weight().end());
  if (weights.size() != num_inputs) {
    return absl::InvalidArgumentError(absl::StrCat("weight: expected one for each input, ",
                                                   num_inputs, " in all, found ", weights.size()));
  }
  double total = 0;
  for (const double weight : weights) {
    if (!(weight >= 0))
      return absl::InvalidArgumentError(
          absl::StrCat("weight: expected at least 0, found ", weight));
    total += weight;
  }
  if (!std::isfinite(total)) {
    return absl::InvalidArgumentError(absl::StrCat("weight: expected a finite sum, found ", total));
  }
  return weights;
}

const OpRegistration<v1::SampleFromDatasets> kSampleFromDatasets(
    "sample_from_datasets",
    {.place = OpPlace::kAnywhere,
     .keeps_elements = false,
     .counts_failures = true,
     .weights = v1::SampleFromDatasets::kWeightFieldNumber,
     .seed = v1::SampleFromDatasets::kSeedFieldNumber,
     .may_change = {v1::SampleFromDatasets::kWeightFieldNumber}},
    [](const v1::SampleFromDatasets& options, PlanBuilder& plan) -> absl::Status {
      v1::SampleFromDatasets& resolved = *plan.stage_spec().mutable_sample_from_datasets();
      if (!resolved.has_seed()) resolved.set_seed(DrawSeed());
      const uint64_t key = plan.DrawKey(resolved.seed());
      absl::StatusOr<std::vector<Dataset>> inputs = plan.BuildInputs(options.input());
      if (!inputs.ok()) return inputs.status();
      if (absl::Status status = MakeAlike(plan.stage_index(), &*inputs); !status.ok())
        return status;
      absl::StatusOr<std::vector<double>> weights = ReadWeights(options, inputs->size());
      if (!weights.ok()) return weights.status();
      const bool stop = options.stop_on_empty_dataset();
      size_t drawn = 0;
      size_t endless = 0;
      for (size_t i = 0; i < inputs->size(); ++i) {
        if ((*weights)[i] == 0) continue;
        ++drawn;
        endless += (*inputs)[i].endless;
      }
      plan.SetBranches(*std::move(inputs), [weights = *std::move(weights), key,
                                            rerandomize = options.rerandomize_each_iteration(),
                                            stop](FrontContext& context, OrderInputs inputs) {
        return DirectedOrder(context, std::make_unique<WeightedChooser>(weights, key, rerandomize),
                             std::move(inputs), stop);
      });
      plan.SetEndless(endless > 0 && (!stop || endless == drawn));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
