#include "server/engine/plan/whole_batches.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "google/protobuf/message.h"
#include "server/engine/compute/own_rows.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {

std::optional<int64_t> BatchSizeOfElements(const v1::PipelineSpec& spec) {
  for (int i = spec.stage_size() - 1; i >= 0; --i) {
    const v1::Stage& stage = spec.stage(i);
    const OpTraits& traits = TraitsOf(stage);
    if (traits.batch_size != 0) {
      const auto [options, field] = FindOption(*OptionsOf(stage), traits.batch_size);
      return options->GetReflection()->GetInt64(*options, field);
    }
    if (traits.gives == Given::kOthers && traits.passes == 0) return std::nullopt;
  }
  return std::nullopt;
}

absl::StatusOr<bool> DivideWholeBatches(World world, BuiltPlan* built) {
  Dataset& dataset = built->dataset;
  const std::optional<int64_t> rows = BatchSizeOfElements(built->stages.spec());
  const bool divides =
      rows && std::any_of(dataset.signature.begin(), dataset.signature.end(),
                          [&](const Feature& one) { return IsDivided(one.type, *rows); });
  if (!divides) return false;
  if (*rows < world.hosts) return TooManyHosts(world, *rows);
  auto node = std::make_unique<WorkNode>();
  node->kind = WorkNode::Kind::kWork;
  node->stages = {static_cast<int>(built->stages.names().size()) - 1};
  node->op = MakeOwnRows(dataset.work->output, *rows, world);
  node->output = node->op->output();
  node->inputs.push_back(std::move(dataset.work));
  dataset.work = std::move(node);
  dataset.signature = dataset.work->output;
  return true;
}

absl::Status TooManyHosts(World world, int64_t batch_rows) {
  return absl::InvalidArgumentError(absl::StrCat("world: ", world.hosts,
                                                 " hosts divide batches of ", batch_rows,
                                                 " rows: some would have none; batch_size is that "
                                                 "of all hosts together, so expected at least ",
                                                 world.hosts));
}

}  // namespace penstock
