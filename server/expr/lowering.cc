#include "server/expr/lowering.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/expr/part_kernel.h"
#include "server/expr/tile_kernel.h"

namespace penstock::expr {
namespace {

const Node* SkipShapes(const Node* node) {
  while (node->kind == Node::Kind::kView && node->source.empty()) node = node->arguments[0];
  return node;
}

bool IsCast(const Node& node) {
  return node.kind == Node::Kind::kElementwise && node.function->rule == TypeRule::kCast;
}

// The elementwise functions that lie between `node` and `leaves`, in the order in which they are
// computed: "divide, subtract".
std::string ElementwiseNames(const Node& node, const std::set<const Node*>& leaves) {
  constexpr size_t kMostNames = 4;
  std::vector<const Node*> waiting = {&node};
  std::set<const Node*> seen;
  std::map<int, std::string> functions;  // by the nodes' ids: arguments come first
  while (!waiting.empty()) {
    const Node* const next = SkipShapes(waiting.back());
    waiting.pop_back();
    if (next->kind != Node::Kind::kElementwise || !seen.insert(next).second) continue;
    functions[next->id] = Text(next->function->name);
    for (const Node* argument : next->arguments) {
      if (!leaves.contains(SkipShapes(argument))) waiting.push_back(argument);
    }
  }
  std::vector<std::string> names;
  for (const auto& [id, name] : functions) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return "copy";
  const bool has_more = names.size() > kMostNames;
  if (has_more) names.resize(kMostNames);
  return absl::StrCat(absl::StrJoin(names, ", "), has_more ? ", …" : "");
}

}  // namespace

absl::Status Lowering::MarkRoot(const Node* node, const Node* reader) {
  node = SkipShapes(node);
  readers_[node].insert(reader);
  if (!roots_.insert(node).second) return absl::OkStatus();
  if (node->bits != nullptr && node->kind != Node::Kind::kRow) {
    auto pattern = BitPattern::Make(graph_, *node);
    if (!pattern.ok()) return pattern.status();
    if (*pattern != nullptr) {
      patterns_[node] = std::move(*pattern);
      // The bytes behind the bits are what it reads.
      return MarkRoot(node->bits->arguments[0], node);
    }
  }
  switch (node->kind) {
    case Node::Kind::kInput:
    case Node::Kind::kConstant:
      return absl::OkStatus();
    case Node::Kind::kElementwise:
      for (const Node* argument : node->arguments) {
        if (auto status = VisitRegion(argument, node); !status.ok()) return status;
      }
      return absl::OkStatus();
    case Node::Kind::kView:
    case Node::Kind::kRow:
      for (const Node* argument : node->arguments) {
        if (auto status = MarkRoot(argument, node); !status.ok()) return status;
      }
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

absl::Status Lowering::VisitRegion(const Node* node, const Node* root) {
  node = SkipShapes(node);
  if (node->is_constant()) return absl::OkStatus();
  if (node->kind != Node::Kind::kElementwise || roots_.contains(node)) return MarkRoot(node, root);
  // The fused kernel gives any type at no cost, so a cast of bits is better done there.
  if (node->bits != nullptr && IsCast(*node)) return MarkRoot(node, root);
  const auto [reached, first] = reached_from_.emplace(node, root);
  if (!first) {
    // A cast is cheaper than a column.
    if (reached->second != root && !IsCast(*node)) return MarkRoot(node, root);
    if (reached->second == root) return absl::OkStatus();
  }
  for (const Node* argument : node->arguments) {
    if (auto status = VisitRegion(argument, root); !status.ok()) return status;
  }
  return absl::OkStatus();
}

Place Lowering::Destination(const Node* node) {
  Place place;
  place.type = node->type;
  const auto output = output_columns_.find(node);
  if (output != output_columns_.end()) {
    place.column = output->second;
    return place;
  }
  place.column =
      static_cast<int>(num_inputs_ + result_.num_outputs + result_.temporary_bytes.size());
  result_.temporary_bytes.push_back(
      node->fixed() ? static_cast<size_t>(NumBytes(node->type).value_or(0)) : 0);
  return place;
}

Place Lowering::AddConstant(const Node* node) {
  std::vector<uint8_t> data = node->data;
  data.resize(data.size() + Arena::kPadding);
  result_.constants.push_back(std::move(data));
  Place place;
  place.type = node->type;
  place.constant = true;
  // Constants have columns of their own, which count down from -1.
  place.column = -static_cast<int>(result_.constants.size());
  return place;
}

absl::StatusOr<Place> Lowering::Materialize(const Node* node) {
  if (node->kind == Node::Kind::kView && node->source.empty()) {
    auto place = Materialize(node->arguments[0]);
    if (place.ok()) place->type = node->type;
    return place;
  }
  if (const auto found = places_.find(node); found != places_.end()) return found->second;
  absl::StatusOr<Place> place;
  if (patterns_.contains(node)) {
    place = MaterializeBits(node);
  } else {
    switch (node->kind) {
      case Node::Kind::kInput: {
        Place input;
        input.column = node->input;
        input.type = node->type;
        place = input;
        break;
      }
      case Node::Kind::kConstant:
        place = AddConstant(node);
        break;
      case Node::Kind::kView:
        place = MaterializeView(node);
        break;
      case Node::Kind::kElementwise:
        place = MaterializeRegion(node);
        break;
      case Node::Kind::kRow:
        place = MaterializeRow(node, nullptr, node);
        break;
    }
  }
  if (place.ok()) places_[node] = *place;
  return place;
}

absl::StatusOr<Place> Lowering::MaterializeBits(const Node* node) {
  auto from = Materialize(node->bits->arguments[0]);
  if (!from.ok()) return from;
  const Place to = Destination(node);
  AddStep(node->bits->name,
          MakeBitStep(*from, std::move(patterns_[node]), node->type, lanes_, to.column));
  return to;
}

absl::StatusOr<Place> Lowering::MaterializeView(const Node* node) {
  auto from = Materialize(node->arguments[0]);
  if (!from.ok()) return from;
  bool contiguous = true;
  for (size_t i = 1; contiguous && i < node->source.size(); ++i) {
    contiguous = node->source[i] == node->source[i - 1] + 1;
  }
  if (contiguous) {
    from->offset += static_cast<size_t>(node->source[0]) * DTypeSize(node->type.dtype);
    from->type = node->type;
    return from;
  }
  const Place to = Destination(node);
  AddStep("rearrange", MakeGatherStep(*from, node->source, node->type, to.column));
  return to;
}

void Lowering::AddStep(std::string name, std::unique_ptr<Step> step) {
  result_.names.push_back(std::move(name));
  result_.steps.push_back(std::move(step));
}

absl::StatusOr<Place> Lowering::MaterializeRegion(const Node* node) {
  std::set<const Node*> leaves = roots_;
  leaves.erase(node);
  auto region = Region::Build(*node, leaves, lanes_);
  if (!region.ok()) return region.status();
  const std::vector<const Node*> inputs = (*region)->inputs();
  if (inputs.size() == 1 && inputs[0]->kind == Node::Kind::kRow && inputs[0]->fixed() &&
      inputs[0]->bits == nullptr && readers_[inputs[0]].size() == 1 &&
      !output_columns_.contains(inputs[0]) && inputs[0]->elements() == node->elements()) {
    return MaterializeRow(inputs[0], std::move(*region), node);
  }
  std::vector<Place> places;
  for (const Node* input : inputs) {
    auto place = Materialize(input);
    if (!place.ok()) return place;
    places.push_back(*place);
  }
  const Place to = Destination(node);
  AddStep(ElementwiseNames(*node, leaves),
          MakeRegionStep(std::move(*region), std::move(places), node->type, to.column));
  return to;
}

const Node* Lowering::OwnImage(const Node& node) const {
  if (node.arguments.empty()) return nullptr;
  const Node* const image = node.arguments[0];
  const auto readers = readers_.find(image);
  const bool alone = image->kind == Node::Kind::kRow && readers != readers_.end() &&
                     readers->second.size() == 1 && !output_columns_.contains(image) &&
                     !patterns_.contains(image);
  return alone ? image : nullptr;
}

Lowering::RowCall Lowering::CallOf(const Node& node) {
  RowCall call{node.name, node.row.kernel, node.arguments};
  const Node* const image = OwnImage(node);
  if (image == nullptr) return call;
  if (call.kernel->takes_parts() && image->row.kernel->NewPartReader() != nullptr) {
    call.name = absl::StrCat(image->name, ", ", call.name);
    call.kernel = MakePartKernel(image->row.kernel, image->arguments.size(), call.kernel);
    call.arguments = image->arguments;
  } else if (call.kernel->takes_tiles() && image->fixed()) {
    RowCall maker = CallOf(*image);
    call.name = absl::StrCat(maker.name, ", ", call.name);
    call.kernel = MakeTileKernel(std::move(maker.kernel), maker.arguments.size(), image->type.shape,
                                 call.kernel);
    call.arguments = std::move(maker.arguments);
  } else {
    return call;
  }
  call.arguments.insert(call.arguments.end(), node.arguments.begin() + 1, node.arguments.end());
  return call;
}

absl::StatusOr<Place> Lowering::MaterializeRow(const Node* node, std::unique_ptr<Region> epilogue,
                                               const Node* result) {
  RowCall call = CallOf(*node);
  std::vector<Place> arguments;
  for (const Node* argument : call.arguments) {
    auto place = Materialize(argument);
    if (!place.ok()) return place;
    arguments.push_back(*place);
  }
  const Place to = Destination(result);
  const bool to_output = output_columns_.contains(result);
  result_.row_by_row = true;
  if (epilogue != nullptr) absl::StrAppend(&call.name, ", ", ElementwiseNames(*result, {node}));
  AddStep(std::move(call.name),
          MakeRowStep(std::move(call.kernel), node->type, std::move(arguments), std::move(epilogue),
                      result->type, to_output, to.column));
  return to;
}

absl::StatusOr<Steps> Lowering::Lower(const std::vector<const Node*>& outputs) {
  result_.num_inputs = num_inputs_;
  result_.num_outputs = outputs.size();
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Node* node = SkipShapes(outputs[i]);
    output_columns_.emplace(node, static_cast<int>(num_inputs_ + i));
    if (auto status = MarkRoot(node, nullptr); !status.ok()) return status;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    auto place = Materialize(outputs[i]);
    if (!place.ok()) return place.status();
    const int column = static_cast<int>(num_inputs_ + i);
    if (place->column != column) {
      place->type = outputs[i]->type;
      AddStep("copy",
              NumBytes(place->type) ? MakeCopyStep(*place, column) : MakeAliasStep(*place, column));
    }
  }
  return std::move(result_);
}

}  // namespace penstock::expr
