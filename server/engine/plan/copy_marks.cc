#include "server/engine/plan/copy_marks.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "server/engine/compute/batch_program.h"
#include "server/engine/section/section.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

constexpr char kCopiesDraw[] = "each copy of an element draws for itself";

bool AnyCallsRandom(v1::PipelineSpec& spec) {
  const std::vector<v1::Stage*> stages = AllStages(spec);
  return std::any_of(stages.begin(), stages.end(),
                     [](const v1::Stage* stage) { return CallsRandom(*stage); });
}

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

CopyMarks::CopyMarks(StageTable& stages, const StageWalk& walk, GrowingDataset& dataset)
    : stages_(stages), walk_(walk), dataset_(dataset), draws_(AnyCallsRandom(stages.spec())) {}

bool CopyMarks::needs_paths() const {
  const CopyState& copies = dataset_.now().copies;
  return draws_ && (copies.same_place || copies.changed);
}

void CopyMarks::ChangePaths() {
  if (draws_) dataset_.now().copies.changed = true;
}

void CopyMarks::AddDrawing() {
  if (dataset_.now().copies.changed) RaiseDrawing(walk_.number());
}

void CopyMarks::RaiseDrawing(int stage) { stages_.RaiseMeaning(stage, {2, kCopiesDraw}); }

bool CopyMarks::Mark() {
  Dataset& now = dataset_.now();
  CopyState& copies = now.copies;
  const WorkNode* const boundary = scope_ ? scope_->boundary : nullptr;
  if (!copies.passes && !copies.unkeyed) return false;
  if (!NeedsMark(*now.work, boundary)) return false;
  for (const std::shared_ptr<PassNumbers>& repeat : copies.repeats) repeat->relative = true;
  // What looks at the elements would find but one reference of each.
  AddMark(*now.work, dataset_.AddReference(), boundary, [this](int stage) { RaiseDrawing(stage); });
  PutMarks(&now.order);
  copies.passes = copies.unkeyed = false;
  copies.marked = copies.same_place = copies.changed = true;
  copies.repeats.clear();
  return true;
}

void CopyMarks::MarkUpstream(CopyState::Upstream& upstream) {
  Section& section = *upstream.section;
  if (upstream.is_marked) return;
  const bool splits_by_draws = section.split != nullptr && section.split->draws();
  if (!splits_by_draws && !AnyDraws(*section.tree)) return;
  upstream.is_marked = true;
  if (splits_by_draws) RaiseDrawing(section.stage);
  AddMark(*section.tree, section.width++, upstream.boundary,
          [this](int stage) { RaiseDrawing(stage); });
  if (section.batch != nullptr) section.batch->AddReference();
  for (const std::shared_ptr<PassNumbers>& repeat : upstream.repeats) repeat->relative = true;
  PutMarks(&upstream.order->inputs[0]);
  dataset_.now().copies.changed = true;
}

std::shared_ptr<const PassNumbers> CopyMarks::BeginRepeat(bool is_several) {
  auto numbers = std::make_shared<PassNumbers>();
  if (!draws_) return numbers;
  CopyState& copies = dataset_.now().copies;
  if (!scope_) {
    // Its passes take the place of those before.
    Mark();
  } else {
    copies.repeats.push_back(numbers);
  }
  if (!is_several) return numbers;
  if (scope_) {
    for (CopyState::Upstream& upstream : copies.sections) MarkUpstream(upstream);
    dataset_.now().cells = nullptr;
  }
  copies.passes = true;
  ComeAgain(*dataset_.now().work);
  return numbers;
}

void CopyMarks::KeyByElement(bool by_its_file) {
  if (!scope_) return;
  CopyState& copies = dataset_.now().copies;
  copies = scope_->source;
  if (by_its_file && scope_->file_comes_again) copies.unkeyed = true;
}

bool CopyMarks::MarkWrapped() {
  if (!draws_) return false;
  // What is in front draws as it did at the beginning of the pass.
  dataset_.AddBoundary()->marks.push_back(dataset_.AddReference());
  CopyState& copies = dataset_.now().copies;
  copies.marked = copies.same_place = copies.changed = true;
  return true;
}

void CopyMarks::EndSection(Section& section, bool is_marked) {
  CopyState& copies = dataset_.now().copies;
  if (scope_) {
    copies.sections.push_back({&section, dataset_.now().order.get(), std::move(copies.repeats),
                               scope_->boundary, is_marked});
  }
  // Its cells have the paths, with passes and marks.
  copies.passes = copies.unkeyed = copies.marked = false;
  copies.repeats.clear();
  if (section.split != nullptr && section.split->makes_rows()) copies.same_place = true;
}

std::optional<CopyMarks::Scope> CopyMarks::BeginScope(Scope scope, bool is_over) {
  scope.boundary = nullptr;
  std::optional<Scope> around = std::exchange(scope_, std::move(scope));
  if (!is_over) return around;
  dataset_.now().copies = scope_->source;
  if (draws_) scope_->boundary = dataset_.AddBoundary();
  return around;
}

void CopyMarks::EndScope(std::optional<Scope> around, const CopyState& outer) {
  Mark();
  scope_ = std::move(around);
  CopyState& copies = dataset_.now().copies;
  copies.passes = outer.passes;
  copies.unkeyed = outer.unkeyed;
  copies.same_place = copies.same_place || outer.same_place;
  copies.changed = copies.changed || outer.changed;
  copies.repeats = outer.repeats;
  copies.sections.insert(copies.sections.begin(), outer.sections.begin(), outer.sections.end());
  // Its elements have the passes of those that they were made for.
  if (outer.passes || outer.unkeyed) ComeAgain(*dataset_.now().work);
}

}  // namespace penstock
