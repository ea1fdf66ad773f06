#include "server/engine/plan/growing_dataset.h"

#include "base/row_shape.h"
#include "server/engine/read/element_cells.h"

namespace penstock {

Dataset GrowingDataset::MakeLeaf(std::unique_ptr<ColumnLoader> loader, FileRange files,
                                 OrderFactory make) {
  const int stage = walk_.number();
  stages_.SetKind(stage, StageKind::kOrder);
  Dataset dataset;
  dataset.signature = loader->output();
  dataset.structure = loader->is_dict() ? DictStructure(loader->output()) : "null";
  dataset.width = 1;
  dataset.work = std::make_unique<WorkNode>();
  dataset.work->stages = {stage};
  dataset.work->output = loader->output();
  dataset.work->loader = std::move(loader);
  dataset.work->first_file = files.first;
  if (make != nullptr) {
    dataset.order = std::make_unique<OrderNode>();
    dataset.order->stage = stage;
    dataset.order->make = std::move(make);
  }
  return dataset;
}

void GrowingDataset::ReorderSource(std::unique_ptr<ColumnLoader> loader, OrderFactory make) {
  const int stage = walk_.number();
  stages_.SetKind(stage, StageKind::kOrder);
  dataset_.indexed.reset();
  WorkNode* source = dataset_.work.get();
  while (source->kind == WorkNode::Kind::kWork) source = source->inputs[0].get();
  source->stages = {stage};
  source->loader = std::move(loader);
  dataset_.order = std::make_unique<OrderNode>();
  dataset_.order->stage = stage;
  dataset_.order->make = std::move(make);
}

void GrowingDataset::AddOrder(OrderFactory make, CursorClass cursor_class) {
  stages_.SetKind(walk_.number(), StageKind::kOrder);
  dataset_.indexed.reset();
  auto node = std::make_unique<OrderNode>();
  node->stage = walk_.number();
  node->make = std::move(make);
  node->cursor_class = cursor_class;
  node->inputs.push_back(std::move(dataset_.order));
  dataset_.order = std::move(node);
}

void GrowingDataset::AddWork(std::unique_ptr<WorkOp> op, std::string structure) {
  const int stage = walk_.number();
  stages_.SetKind(stage, StageKind::kWork);
  dataset_.signature = op->output();
  dataset_.structure = structure.empty() ? DictStructure(op->output()) : std::move(structure);
  // What a source's own stage computes of its records is theirs, wherever they stand.
  if (dataset_.order->stage != stage) dataset_.indexed.reset();
  dataset_.paths.reset();
  dataset_.cells = nullptr;
  // What padded no row before has nothing to say of other features.
  if (dataset_.batch.kind == BatchForm::Kind::kPadded)
    dataset_.batch.kind = BatchForm::Kind::kPlain;
  WorkNode& before = *dataset_.work;
  if (before.kind == WorkNode::Kind::kWork && before.stages.size() < kMaxFused) {
    if (std::unique_ptr<WorkOp> fused = before.op->FusedWith(*op)) {
      before.output = fused->output();
      if (before.parts.size() == 1) before.parts[0].op = std::move(before.op);
      before.op = std::move(fused);
      before.stages.push_back(stage);
      before.parts.push_back({stage, batched(), std::move(op)});
      return;
    }
  }
  auto node = std::make_unique<WorkNode>();
  node->kind = WorkNode::Kind::kWork;
  node->stages = {stage};
  node->output = op->output();
  node->op = std::move(op);
  node->parts.push_back({stage, batched(), nullptr});
  node->inputs.push_back(std::move(dataset_.work));
  dataset_.work = std::move(node);
}

WorkNode* GrowingDataset::AddBoundary() {
  auto boundary = std::make_unique<WorkNode>();
  boundary->kind = WorkNode::Kind::kTuple;
  boundary->stages = {walk_.number()};
  boundary->output = dataset_.work->output;
  boundary->marks = MarksOf(*dataset_.work);
  boundary->comes_again = {true};
  boundary->inputs.push_back(std::move(dataset_.work));
  dataset_.work = std::move(boundary);
  return dataset_.work.get();
}

uint32_t GrowingDataset::AddReference() {
  dataset_.indexed.reset();
  dataset_.cells = nullptr;
  return dataset_.width++;
}

void GrowingDataset::BeginInCells(int stage, std::unique_ptr<ElementCells> cells,
                                  std::string structure) {
  dataset_.cells = cells.get();
  auto work = std::make_unique<WorkNode>();
  work->stages = {stage};
  work->output = cells->output();
  work->loader = std::move(cells);
  work->first_file = dataset_.work->LowestFile();
  work->inputs.push_back(std::move(dataset_.work));
  dataset_.work = std::move(work);
  dataset_.signature = dataset_.work->output;
  dataset_.structure = std::move(structure);
  dataset_.width = 1;
  dataset_.indexed.reset();
  dataset_.paths.reset();
}

std::optional<uint32_t> GrowingDataset::full_batch_rows() const {
  const Remainder remainder = dataset_.batch.remainder;
  const bool full = remainder == Remainder::kDrop || remainder == Remainder::kWrap;
  return batched() && full ? dataset_.batch_rows : std::nullopt;
}

void GrowingDataset::SetBatch(uint32_t rows, BatchForm form) {
  dataset_.batch_rows = rows;
  form.stage = walk_.number();
  for (size_t i = 0; i < form.shapes.size(); ++i) dataset_.signature[i].type.shape = form.shapes[i];
  dataset_.batch = std::move(form);
}

void GrowingDataset::PadBatch(std::vector<std::string> values) {
  dataset_.batch.kind = BatchForm::Kind::kPadded;
  dataset_.batch.shapes.clear();
  for (const Feature& feature : dataset_.signature)
    dataset_.batch.shapes.push_back(feature.type.shape);
  dataset_.batch.values = std::move(values);
}

bool GrowingDataset::PadsRows() const {
  if (batched() && dataset_.batch.kind == BatchForm::Kind::kSparse) return true;
  if (!batched() || dataset_.batch.kind != BatchForm::Kind::kPadded) return false;
  for (size_t i = 0; i < dataset_.signature.size(); ++i) {
    const Shape& shape = dataset_.signature[i].type.shape;
    if (dataset_.signature[i].type.form != RowForm::kPlain) continue;
    if (HasUnknownAxes(shape) || shape != dataset_.work->output[i].type.shape) return true;
  }
  return false;
}

bool GrowingDataset::is_computed() const {
  const WorkNode* work = dataset_.work.get();
  // Where stages for each element begin there is one more node.
  while (work->kind == WorkNode::Kind::kTuple && work->inputs.size() == 1)
    work = work->inputs[0].get();
  return work->kind != WorkNode::Kind::kLoad;
}

}  // namespace penstock
