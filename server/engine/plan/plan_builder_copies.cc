// Elements that come more than once (engine/order/copies.h): the part of PlanBuilder that marks them.
#include <memory>
#include <utility>

#include "server/engine/compute/batch_program.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/section/section.h"

namespace penstock {
namespace {

constexpr char kCopiesDraw[] = "each copy of an element draws for itself";

// The node, whose order op sees marks behind the references of its input.
void PutMarks(std::unique_ptr<OrderNode>* input) {
  auto node = std::make_unique<OrderNode>();
  node->stage = (*input)->stage;
  node->is_mark = true;
  node->make = MarkingOrder();
  node->inputs.push_back(std::move(*input));
  *input = std::move(node);
}

}  // namespace

std::function<void(int stage)> PlanBuilder::RaiseDrawing() {
  return [this](int stage) { RaiseMeaningOf(stage, {2, kCopiesDraw}); };
}

bool PlanBuilder::MarkCopies() {
  CopyState& copies = dataset_.copies;
  const WorkNode* const boundary = scope_ ? scope_->boundary : nullptr;
  if (!copies.passes && !copies.unkeyed) return false;
  if (!NeedsMark(*dataset_.work, boundary)) return false;
  for (const std::shared_ptr<PassNumbers>& repeat : copies.repeats) repeat->relative = true;
  AddMark(*dataset_.work, dataset_.width++, boundary, RaiseDrawing());
  PutMarks(&dataset_.order);
  dataset_.indexed.reset();
  // What looks at the elements finds but one reference of each.
  dataset_.cells = nullptr;
  copies.passes = copies.unkeyed = false;
  copies.marked = copies.same_place = copies.changed = true;
  copies.repeats.clear();
  return true;
}

void PlanBuilder::MarkUpstream(CopyState::Upstream& upstream) {
  Section& section = *upstream.section;
  if (upstream.is_marked) return;
  const bool splits_by_draws = section.split != nullptr && section.split->draws();
  if (!splits_by_draws && !AnyDraws(*section.tree)) return;
  upstream.is_marked = true;
  if (splits_by_draws) RaiseDrawing()(section.stage);
  AddMark(*section.tree, section.width++, upstream.boundary, RaiseDrawing());
  if (section.batch != nullptr) section.batch->AddReference();
  for (const std::shared_ptr<PassNumbers>& repeat : upstream.repeats) repeat->relative = true;
  PutMarks(&upstream.order->inputs[0]);
  dataset_.copies.changed = true;
}

std::shared_ptr<const PassNumbers> PlanBuilder::BeginRepeat(bool is_several) {
  auto numbers = std::make_shared<PassNumbers>();
  if (!draws_) return numbers;
  if (!scope_) {
    // Its passes take the place of those before.
    MarkCopies();
  } else {
    dataset_.copies.repeats.push_back(numbers);
  }
  if (!is_several) return numbers;
  if (scope_) {
    for (CopyState::Upstream& upstream : dataset_.copies.sections) MarkUpstream(upstream);
    dataset_.cells = nullptr;
  }
  dataset_.copies.passes = true;
  ComeAgain(*dataset_.work);
  return numbers;
}

void PlanBuilder::KeyByElement(bool by_its_file) {
  if (!scope_) return;
  dataset_.copies = scope_->source;
  if (by_its_file && scope_->file_comes_again) dataset_.copies.unkeyed = true;
}

void PlanBuilder::EndCopies(Section& section, bool is_marked) {
  CopyState& copies = dataset_.copies;
  if (scope_) {
    copies.sections.push_back(
        {&section, dataset_.order.get(), std::move(copies.repeats), scope_->boundary, is_marked});
  }
  // Its cells have the paths, with passes and marks.
  copies.passes = copies.unkeyed = copies.marked = false;
  copies.repeats.clear();
  if (section.split != nullptr && section.split->makes_rows()) copies.same_place = true;
}

std::optional<PlanBuilder::Scope> PlanBuilder::BeginScope(Scope scope, bool is_over) {
  scope.boundary = nullptr;
  std::optional<Scope> around = std::exchange(scope_, std::move(scope));
  if (!is_over) return around;
  dataset_.copies = scope_->source;
  if (draws_) scope_->boundary = AddBoundary();
  return around;
}

WorkNode* PlanBuilder::AddBoundary() {
  auto boundary = std::make_unique<WorkNode>();
  boundary->kind = WorkNode::Kind::kTuple;
  boundary->stages = {stage_};
  boundary->output = dataset_.work->output;
  boundary->marks = MarksOf(*dataset_.work);
  boundary->comes_again = {true};
  boundary->inputs.push_back(std::move(dataset_.work));
  dataset_.work = std::move(boundary);
  return dataset_.work.get();
}

bool PlanBuilder::MarkWrapped() {
  if (!draws_) return false;
  // What is in front draws as it did at the beginning of the pass.
  AddBoundary()->marks.push_back(dataset_.width++);
  dataset_.indexed.reset();
  dataset_.cells = nullptr;
  dataset_.copies.marked = dataset_.copies.same_place = dataset_.copies.changed = true;
  return true;
}

void PlanBuilder::EndScope(std::optional<Scope> around, const CopyState& outer) {
  MarkCopies();
  scope_ = std::move(around);
  CopyState& copies = dataset_.copies;
  copies.passes = outer.passes;
  copies.unkeyed = outer.unkeyed;
  copies.same_place = copies.same_place || outer.same_place;
  copies.changed = copies.changed || outer.changed;
  copies.repeats = outer.repeats;
  copies.sections.insert(copies.sections.begin(), outer.sections.begin(), outer.sections.end());
  // Its elements have the passes of those that they were made for.
  if (outer.passes || outer.unkeyed) ComeAgain(*dataset_.work);
}

}  // namespace penstock
