#include "server/engine/plan/plan_builder.h"

#include "server/engine/plan/joined_datasets.h"

namespace penstock {

PlanBuilder::PlanBuilder(v1::PipelineSpec spec, FileSystem& files)
    : stages_(std::move(spec)),
      walk_(stages_, *this),
      files_(files),
      dataset_(stages_, walk_),
      copies_(stages_, walk_, dataset_),
      sections_(stages_, walk_, files_, dataset_, copies_),
      nested_(stages_, walk_, dataset_, copies_, sections_) {}

absl::StatusOr<BuiltPlan> PlanBuilder::Build() {
  if (absl::Status status = stages_.Check(); !status.ok()) return status;
  if (absl::Status status = walk_.BuildAll(); !status.ok()) return status;
  return BuiltPlan{std::move(stages_), std::move(files_), dataset_.Take()};
}

PlanBuilder::Upstream PlanBuilder::upstream() const {
  Upstream before;
  before.stages = walk_.Before();
  before.meanings = walk_.MeaningsBefore();
  const Dataset& now = dataset_.now();
  // What is kept has the paths of its elements, for whatever draws behind it.
  if (now.copies.changed) before.meanings.append("paths of copies;");
  before.first_file = now.work->LowestFile();
  before.files = files_.From(before.first_file);
  return before;
}

void PlanBuilder::SetSource(std::unique_ptr<ColumnLoader> loader, FileRange files,
                            OrderFactory make, CursorClass cursor_class) {
  dataset_.Become(MakeLeaf(std::move(loader), files, std::move(make)));
  dataset_.now().order->cursor_class = cursor_class;
}

void PlanBuilder::AddWork(std::unique_ptr<WorkOp> op, std::string structure) {
  if (op->draws()) copies_.AddDrawing();
  dataset_.AddWork(std::move(op), std::move(structure));
}

Dataset PlanBuilder::MakeLeaf(std::unique_ptr<ColumnLoader> loader, FileRange files,
                              OrderFactory make) {
  Dataset leaf = dataset_.MakeLeaf(std::move(loader), files, std::move(make));
  copies_.BeginLeaf(leaf);
  return leaf;
}

void PlanBuilder::SetTuple(std::vector<Dataset> inputs, OrderFactory make) {
  MarkStageAsOrder();
  dataset_.Become(TupleOf(std::move(inputs), walk_.number(), std::move(make)));
}

void PlanBuilder::SetBranches(std::vector<Dataset> inputs, OrderFactory make,
                              std::optional<Dataset> chooser) {
  MarkStageAsOrder();
  dataset_.Become(
      BranchesOf(std::move(inputs), walk_.number(), std::move(make), std::move(chooser)));
}

}  // namespace penstock
