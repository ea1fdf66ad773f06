// Ops that have datasets inside of them, or several in front: the part of PlanBuilder that builds those.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/order/window_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/plan/plan.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {
namespace {

// Whether a source of these stages is made of the window that they stand in, and not of one further inside.
bool HasWindowParts(const v1::Input& input) {
  for (const v1::Stage& stage : input.stage()) {
    const OpTraits& traits = TraitsOf(stage);
    if (traits.is_window_part) return true;
    const google::protobuf::Message* const options = OptionsOf(stage);
    if (traits.nests_elements || options == nullptr) continue;
    const google::protobuf::FieldDescriptor* const inputs = InputField(*options);
    if (inputs == nullptr) continue;
    for (int i = 0; i < options->GetReflection()->FieldSize(*options, inputs); ++i) {
      const google::protobuf::Message& inner =
          options->GetReflection()->GetRepeatedMessage(*options, inputs, i);
      if (HasWindowParts(static_cast<const v1::Input&>(inner))) return true;
    }
  }
  return false;
}

// Whether nested stages are made of an element's values, and not of a source of their own.
bool UsesElement(const v1::Input& input) {
  if (input.stage().empty()) return false;
  const google::protobuf::FieldDescriptor* const field = OpField(input.stage(0));
  const bool is_known = field != nullptr && FindOp(field->name()) != nullptr;
  return HasWindowParts(input) || (is_known && TraitsOf(field).place == OpPlace::kInside);
}

// Whether elements are more than what sources have loaded, side by side or in turns.
bool Computes(const WorkNode& work) {
  if (work.kind == WorkNode::Kind::kLoad) return false;
  return work.kind == WorkNode::Kind::kWork ||
         std::any_of(work.inputs.begin(), work.inputs.end(),
                     [](const std::unique_ptr<WorkNode>& input) { return Computes(*input); });
}

}  // namespace

// From the stage's own message: nested ops fill in seeds.
v1::Input* PlanBuilder::NestedInput(int i) {
  google::protobuf::Message* const options = MutableOptionsOf(stage_message_);
  return static_cast<v1::Input*>(
      options->GetReflection()->MutableRepeatedMessage(options, InputField(*options), i));
}

absl::StatusOr<Dataset> PlanBuilder::BuildInput(int i) {
  v1::Input* const input = NestedInput(i);
  if (input->stage().empty())
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has no stage"));
  const int stage = stage_;
  v1::Stage* const message = stage_message_;
  if (absl::Status status = BuildStages(input->mutable_stage()); !status.ok()) return status;
  stage_ = stage;
  stage_message_ = message;
  if (absl::Status status = EndBatches(); !status.ok()) return status;
  return TakeDataset();
}

absl::StatusOr<std::vector<Dataset>> PlanBuilder::BuildInputs(
    const google::protobuf::RepeatedPtrField<v1::Input>& inputs) {
  std::vector<Dataset> built;
  if (dataset_.order != nullptr) {
    if (absl::Status status = EndBatches(); !status.ok()) return status;
    built.push_back(TakeDataset());
  }
  for (int i = 0; i < inputs.size(); ++i) {
    absl::StatusOr<Dataset> input = BuildInput(i);
    if (!input.ok()) return input.status();
    built.push_back(*std::move(input));
  }
  return built;
}

absl::Status PlanBuilder::SetNested(const google::protobuf::RepeatedPtrField<v1::Input>& input,
                                    const NestedFactory& of_files, const NestedFactory& of_values) {
  if (input.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected one input, the dataset of one element, found ", input.size()));
  }
  const std::optional<FileRange> paths = batched() ? std::nullopt : dataset_.paths;
  if (UsesElement(input[0])) {
    return SetWindows(
        input, [&](const OrderNode& nested, uint32_t) { return of_values(nested, dataset_.width); },
        WindowKind::kElement, CursorClass::kSeek, paths);
  }
  if (absl::Status status = EndBatches(); !status.ok()) return status;
  if (scope_) MarkCopies();
  // Nobody looks at the elements, but one that fails is none, or ends the stream.
  if (Computes(*dataset_.work)) EndSectionEmpty();
  const std::optional<FileRange> outer_files = std::exchange(element_files_, paths);
  const bool outer_nested = std::exchange(nested_, true);
  Dataset outer = TakeDataset();
  Scope scope;
  scope.source.changed = outer.copies.changed;
  scope.file_comes_again = outer.copies.marked;
  std::optional<Scope> around = BeginScope(std::move(scope), /*is_over=*/false);
  absl::StatusOr<Dataset> built = BuildInput(0);
  element_files_ = outer_files;
  nested_ = outer_nested;
  if (!built.ok()) {
    scope_ = std::move(around);
    return built.status();
  }
  dataset_ = *std::move(built);
  EndScope(std::move(around), outer.copies);
  stage_kinds_[stage_] = StageKind::kOrder;
  auto node = std::make_unique<OrderNode>();
  node->stage = stage_;
  node->nested = std::move(dataset_.order);
  if (draws_) node->nested->elements_paths = outer.work->PathsOnly();
  node->make = of_files(*node->nested, dataset_.width);
  node->inputs.push_back(std::move(outer.order));
  // Sections of the outer order refer to it.
  node->values = std::move(outer.work);
  dataset_.order = std::move(node);
  dataset_.endless = dataset_.endless || outer.endless;
  dataset_.indexed.reset();
  return absl::OkStatus();
}

OrderFactory PlanBuilder::WindowOrderFactory(uint32_t width) {
  return [width](FrontContext& context, OrderInputs) { return MakeWindowOrder(context, width); };
}

absl::Status PlanBuilder::SetWindows(const google::protobuf::RepeatedPtrField<v1::Input>& input,
                                     const NestedFactory& make, WindowKind kind,
                                     CursorClass cursor_class, std::optional<FileRange> paths) {
  if (input.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most one input, the stages of a window, found ", input.size()));
  }
  if (absl::Status status = EndBatches(); !status.ok()) return status;
  const bool has_parts = !input.empty() && HasWindowParts(input[0]);
  if (absl::Status status = LeaveOutFailures(); !status.ok()) return status;
  // Elements of several passes may be in one window, which has one pass of its own.
  if ((scope_ || kind != WindowKind::kElement) && MarkCopies()) RaiseDrawing()(stage_);
  const bool file_comes_again = dataset_.copies.marked;
  if (has_parts) EndSectionAsIs();
  const WindowElements elements{dataset_.signature, dataset_.structure, dataset_.cells,
                                dataset_.work->LowestFile()};
  stage_kinds_[stage_] = StageKind::kOrder;
  auto node = std::make_unique<OrderNode>();
  node->stage = stage_;
  node->cursor_class = cursor_class;
  node->inputs.push_back(std::move(dataset_.order));
  const uint32_t width = dataset_.width;
  const bool endless = dataset_.endless;
  const std::shared_ptr<const WorkNode> elements_paths =
      draws_ ? dataset_.work->PathsOnly() : nullptr;
  const CopyState outer_copies = dataset_.copies;
  Scope scope;
  scope.source.unkeyed = draws_ && kind == WindowKind::kOverlapping;
  scope.source.marked = outer_copies.marked;
  scope.source.same_place = outer_copies.same_place;
  scope.source.changed = outer_copies.changed;
  scope.file_comes_again = file_comes_again;
  std::optional<Scope> around = BeginScope(std::move(scope), /*is_over=*/!has_parts);
  if (has_parts) {
    node->values = std::move(dataset_.work);
    dataset_ = Dataset{};
  } else {
    dataset_.order = std::make_unique<OrderNode>();
    dataset_.order->stage = stage_;
    dataset_.order->make = WindowOrderFactory(width);
    dataset_.indexed.reset();
    dataset_.paths.reset();
    dataset_.endless = false;
  }
  if (!input.empty()) {
    const int stage = stage_;
    v1::Stage* const message = stage_message_;
    const WindowElements* const outer = std::exchange(window_elements_, &elements);
    // The file of an element outside of the window is none of its elements'.
    const std::optional<FileRange> outer_files = std::exchange(element_files_, paths);
    absl::Status status = BuildStages(NestedInput(0)->mutable_stage(), has_parts);
    window_elements_ = outer;
    element_files_ = outer_files;
    if (!status.ok()) {
      scope_ = std::move(around);
      return status;
    }
    stage_ = stage;
    stage_message_ = message;
  }
  EndScope(std::move(around), outer_copies);
  node->nested = std::move(dataset_.order);
  node->nested->elements_paths = elements_paths;
  node->make = make(*node->nested, width);
  dataset_.order = std::move(node);
  dataset_.endless = dataset_.endless || endless;
  dataset_.indexed.reset();
  return absl::OkStatus();
}

void PlanBuilder::SetTuple(std::vector<Dataset> inputs, OrderFactory make) {
  stage_kinds_[stage_] = StageKind::kOrder;
  Dataset tuple;
  tuple.work = std::make_unique<WorkNode>();
  tuple.work->kind = WorkNode::Kind::kTuple;
  tuple.work->stages = {stage_};
  tuple.order = std::make_unique<OrderNode>();
  tuple.order->stage = stage_;
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
  dataset_ = std::move(tuple);
}

void PlanBuilder::SetBranches(std::vector<Dataset> inputs, OrderFactory make,
                              std::optional<Dataset> chooser) {
  stage_kinds_[stage_] = StageKind::kOrder;
  Dataset joined;
  joined.signature = inputs.front().signature;
  joined.structure = inputs.front().structure;
  joined.work = std::make_unique<WorkNode>();
  joined.work->kind = WorkNode::Kind::kBranch;
  joined.work->stages = {stage_};
  joined.work->output = joined.signature;
  joined.order = std::make_unique<OrderNode>();
  joined.order->stage = stage_;
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
  dataset_ = std::move(joined);
}

}  // namespace penstock
