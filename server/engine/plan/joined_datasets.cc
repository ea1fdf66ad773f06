#include "server/engine/plan/joined_datasets.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {

Dataset TupleOf(std::vector<Dataset> inputs, int stage, OrderFactory make) {
  Dataset tuple;
  tuple.work = std::make_unique<WorkNode>();
  tuple.work->kind = WorkNode::Kind::kTuple;
  tuple.work->stages = {stage};
  tuple.order = std::make_unique<OrderNode>();
  tuple.order->stage = stage;
  tuple.order->make = std::move(make);
  tuple.endless = true;
  std::vector<CopyState*> copies;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Dataset& input = inputs[i];
    absl::StrAppend(&tuple.structure, i == 0 ? "[" : ",", input.structure);
    for (Feature& feature : input.signature) {
      feature.name =
          input.structure == "null" ? absl::StrCat(i) : absl::StrCat(i, "/", feature.name);
      tuple.signature.push_back(std::move(feature));
    }
    input.work->MoveReferences(tuple.width);
    tuple.width += input.width;
    copies.push_back(&input.copies);
    // A tuple ends with the shortest input; numbers without an order op of their own have no end.
    if (input.order != nullptr) {
      tuple.endless = tuple.endless && input.endless;
      tuple.order->inputs.push_back(std::move(input.order));
    }
    tuple.work->inputs.push_back(std::move(input.work));
  }
  JoinCopies(copies, tuple.work.get(), &tuple.copies);
  tuple.structure += "]";
  tuple.work->output = tuple.signature;
  return tuple;
}

Dataset BranchesOf(std::vector<Dataset> inputs, int stage, OrderFactory make,
                   std::optional<Dataset> chooser) {
  Dataset joined;
  joined.signature = inputs.front().signature;
  joined.structure = inputs.front().structure;
  joined.work = std::make_unique<WorkNode>();
  joined.work->kind = WorkNode::Kind::kBranch;
  joined.work->stages = {stage};
  joined.work->output = joined.signature;
  joined.order = std::make_unique<OrderNode>();
  joined.order->stage = stage;
  joined.order->make = std::move(make);
  if (chooser) {
    joined.order->inputs.push_back(std::move(chooser->order));
    joined.order->values = std::move(chooser->work);
  }
  std::vector<CopyState*> copies;
  for (Dataset& input : inputs) {
    joined.width = std::max(joined.width, input.width);
    copies.push_back(&input.copies);
    joined.endless = joined.endless || input.endless;
    joined.order->inputs.push_back(std::move(input.order));
    joined.work->first_files.push_back(input.work->FirstFile());
    joined.work->inputs.push_back(std::move(input.work));
  }
  JoinCopies(copies, joined.work.get(), &joined.copies);
  return joined;
}

}  // namespace penstock
