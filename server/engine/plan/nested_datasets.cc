#include "server/engine/plan/nested_datasets.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/order/window_order.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {
namespace {

// Whether a source of these stages is made of the window that they stand in, and not of one further
// inside.
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

absl::StatusOr<Dataset> NestedDatasets::BuildInput(int i) {
  if (!walk_.HasStages(i))
    return absl::InvalidArgumentError(absl::StrCat("input ", i, " has no stage"));
  if (absl::Status status = walk_.BuildInput(i, /*from_source=*/true); !status.ok()) return status;
  if (absl::Status status = sections_.EndBatches(); !status.ok()) return status;
  return dataset_.Take();
}

absl::StatusOr<std::vector<Dataset>> NestedDatasets::BuildInputs(const Inputs& inputs) {
  std::vector<Dataset> built;
  if (dataset_.has_begun()) {
    if (absl::Status status = sections_.EndBatches(); !status.ok()) return status;
    built.push_back(dataset_.Take());
  }
  for (int i = 0; i < inputs.size(); ++i) {
    absl::StatusOr<Dataset> input = BuildInput(i);
    if (!input.ok()) return input.status();
    built.push_back(*std::move(input));
  }
  return built;
}

absl::Status NestedDatasets::SetNested(const Inputs& input, const Factory& of_files,
                                       const Factory& of_values) {
  if (input.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected one input, the dataset of one element, found ", input.size()));
  }
  const std::optional<FileRange> paths = dataset_.batched() ? std::nullopt : dataset_.now().paths;
  if (UsesElement(input[0])) {
    const auto make = [&](const OrderNode& nested, uint32_t) {
      return of_values(nested, dataset_.now().width);
    };
    return SetWindows(input, make, WindowKind::kElement, CursorClass::kSeek, paths);
  }
  if (absl::Status status = sections_.EndBatches(); !status.ok()) return status;
  copies_.MarkInScope();
  // Nobody looks at the elements, but one that fails is none, or ends the stream.
  if (Computes(*dataset_.now().work)) sections_.EndEmpty();
  const std::optional<FileRange> outer_files = std::exchange(element_files_, paths);
  const bool was_in_element = std::exchange(in_element_, true);
  Dataset outer = dataset_.Take();
  CopyMarks::Scope scope;
  scope.source.changed = outer.copies.changed;
  scope.file_comes_again = outer.copies.marked;
  std::optional<CopyMarks::Scope> around = copies_.BeginScope(std::move(scope), /*is_over=*/false);
  absl::StatusOr<Dataset> built = BuildInput(0);
  element_files_ = outer_files;
  in_element_ = was_in_element;
  if (!built.ok()) {
    copies_.LeaveScope(std::move(around));
    return built.status();
  }
  dataset_.Become(*std::move(built));
  copies_.EndScope(std::move(around), outer.copies);
  const int stage = walk_.number();
  stages_.SetKind(stage, StageKind::kOrder);
  Dataset& now = dataset_.now();
  auto node = std::make_unique<OrderNode>();
  node->stage = stage;
  node->nested = std::move(now.order);
  if (copies_.draws()) node->nested->elements_paths = outer.work->PathsOnly();
  node->make = of_files(*node->nested, now.width);
  node->inputs.push_back(std::move(outer.order));
  // Sections of the outer order refer to it.
  node->values = std::move(outer.work);
  now.order = std::move(node);
  now.endless = now.endless || outer.endless;
  now.indexed.reset();
  return absl::OkStatus();
}

OrderFactory NestedDatasets::WindowOrder(uint32_t width) {
  return [width](FrontContext& context, OrderInputs) { return MakeWindowOrder(context, width); };
}

absl::Status NestedDatasets::SetWindows(const Inputs& input, const Factory& make, WindowKind kind,
                                        CursorClass cursor_class, std::optional<FileRange> paths) {
  if (input.size() > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("expected at most one input, the stages of a window, found ", input.size()));
  }
  if (absl::Status status = sections_.EndBatches(); !status.ok()) return status;
  const bool has_parts = !input.empty() && HasWindowParts(input[0]);
  if (absl::Status status = sections_.LeaveOutFailures(); !status.ok()) return status;
  // Elements of several passes may be in one window, which has one pass of its own.
  if ((copies_.in_scope() || kind != WindowKind::kElement) && copies_.Mark()) copies_.AddDrawing();
  Dataset& now = dataset_.now();
  const bool file_comes_again = now.copies.marked;
  if (has_parts) sections_.EndAsIs();
  const WindowElements elements{now.signature, now.structure, now.cells, now.work->LowestFile()};
  const int stage = walk_.number();
  stages_.SetKind(stage, StageKind::kOrder);
  auto node = std::make_unique<OrderNode>();
  node->stage = stage;
  node->cursor_class = cursor_class;
  node->inputs.push_back(std::move(now.order));
  const uint32_t width = now.width;
  const bool endless = now.endless;
  const std::shared_ptr<const WorkNode> elements_paths =
      copies_.draws() ? now.work->PathsOnly() : nullptr;
  const CopyState outer_copies = now.copies;
  CopyMarks::Scope scope;
  scope.source.unkeyed = copies_.draws() && kind == WindowKind::kOverlapping;
  scope.source.marked = outer_copies.marked;
  scope.source.same_place = outer_copies.same_place;
  scope.source.changed = outer_copies.changed;
  scope.file_comes_again = file_comes_again;
  std::optional<CopyMarks::Scope> around =
      copies_.BeginScope(std::move(scope), /*is_over=*/!has_parts);
  if (has_parts) {
    node->values = std::move(now.work);
    now = Dataset{};
  } else {
    now.order = std::make_unique<OrderNode>();
    now.order->stage = stage;
    now.order->make = WindowOrder(width);
    now.indexed.reset();
    now.paths.reset();
    now.endless = false;
  }
  if (!input.empty()) {
    const WindowElements* const outer = std::exchange(window_elements_, &elements);
    // The file of an element outside of the window is none of its elements'.
    const std::optional<FileRange> outer_files = std::exchange(element_files_, paths);
    absl::Status status = walk_.BuildInput(0, has_parts);
    window_elements_ = outer;
    element_files_ = outer_files;
    if (!status.ok()) {
      copies_.LeaveScope(std::move(around));
      return status;
    }
  }
  copies_.EndScope(std::move(around), outer_copies);
  node->nested = std::move(now.order);
  node->nested->elements_paths = elements_paths;
  node->make = make(*node->nested, width);
  now.order = std::move(node);
  now.endless = now.endless || endless;
  now.indexed.reset();
  return absl::OkStatus();
}

}  // namespace penstock
