#include "server/engine/plan/section_cuts.h"

#include <algorithm>
#include <utility>

#include "base/row_shape.h"
#include "server/engine/compute/batch_program.h"
#include "server/engine/section/section_op.h"
#include "server/engine/spec/op_traits.h"

namespace penstock {
namespace {

// Makes one element of each.
class OneToOne final : public SplitOp {
 public:
  explicit OneToOne(std::unique_ptr<WorkOp> op) : op_(std::move(op)) {}
  const Signature& output() const override { return op_->output(); }
  std::optional<uint64_t> elements_of_each() const override { return 1; }
  RowStatus Run(int rows, absl::Span<const Column> in, Split* split, absl::Span<Column> out,
                Arena& arena) const override {
    std::fill(split->counts.begin(), split->counts.end(), 1);
    return op_->Run(rows, in, out, arena);
  }

 private:
  const std::unique_ptr<WorkOp> op_;
};

class AsIs final : public WorkOp {
 public:
  explicit AsIs(Signature signature) : signature_(std::move(signature)) {}
  const Signature& output() const override { return signature_; }
  RowStatus Run(int, absl::Span<const Column> in, absl::Span<Column> out, Arena&) const override {
    std::copy(in.begin(), in.end(), out.begin());
    return {};
  }

 private:
  const Signature signature_;
};

class AsNothing final : public WorkOp {
 public:
  const Signature& output() const override { return signature_; }
  RowStatus Run(int, absl::Span<const Column>, absl::Span<Column>, Arena&) const override {
    return {};
  }

 private:
  const Signature signature_;
};

OrderFactory OrderOf(std::shared_ptr<const Section> section) {
  return [section = std::move(section)](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<SectionOp>(context, section, std::move(inputs[0]));
  };
}

// Whether batches may fail by the shapes of their rows, which have been computed in front of them:
// behind the batch op nothing has left them out.
bool RowsMayDiffer(const Dataset& dataset) {
  if (dataset.batch_rows.value_or(1) == 1 || dataset.batch.kind != BatchForm::Kind::kPlain)
    return false;
  const bool told_by_data =
      std::any_of(dataset.signature.begin(), dataset.signature.end(), [](const Feature& feature) {
        return feature.type.form == RowForm::kPlain && HasUnknownAxes(feature.type.shape);
      });
  if (!told_by_data) return false;
  const OrderNode* node = dataset.order.get();
  while (node != nullptr && node->stage != dataset.batch.stage) {
    if (node->decided_by_values) return false;
    if (node->nested != nullptr) {
      node = node->nested.get();
    } else {
      node = node->inputs.empty() ? nullptr : node->inputs[0].get();
    }
  }
  return true;
}

// Whether what is loaded may be wrong by its values.
bool LoadsValues(const WorkNode& node) {
  if (node.kind == WorkNode::Kind::kLoad) return node.loader->fails_by_values();
  return std::any_of(node.inputs.begin(), node.inputs.end(),
                     [](const std::unique_ptr<WorkNode>& input) { return LoadsValues(*input); });
}

// Whether no element of the stage waits in an op behind it.
bool NothingWaitsBehind(const v1::PipelineSpec& spec, const v1::Stage& stage) {
  const auto& stages = spec.stage();
  auto found = std::find_if(stages.begin(), stages.end(),
                            [&stage](const v1::Stage& of_spec) { return &of_spec == &stage; });
  // Of nested stages it is not known who has their elements.
  if (found == stages.end()) return false;
  return std::none_of(++found, stages.end(),
                      [](const v1::Stage& behind) { return TraitsOf(behind).keeps_elements; });
}

}  // namespace

void SectionCuts::End(std::unique_ptr<SplitOp> split, std::string structure, size_t hidden) {
  const bool marked = copies_.MarkInScope();
  if (split->draws()) copies_.AddDrawing();
  const Dataset& now = dataset_.now();
  stages_.MarkOrder(*now.work);
  auto section = std::make_shared<Section>();
  section->stage = walk_.number();
  section->stage_names = stages_.names();
  section->width = now.width;
  section->block_rows = split->block_rows().value_or(
      BlockRows(std::max(EstimatedRowBytes(now.signature), EstimatedRowBytes(split->output()))));
  section->split = std::move(split);
  section->ignored = walk_.ignored();
  section->makes_blocks = section->split->makes_rows() && hidden == 0 &&
                          NothingWaitsBehind(stages_.spec(), walk_.message());
  section->takes_cells = now.width == 1 && now.work->kind == WorkNode::Kind::kLoad &&
                         dynamic_cast<const ElementCells*>(now.work->loader.get()) != nullptr;
  BeginAfter(*section, section->split->output(), std::move(structure), hidden);
  dataset_.AddOrder(OrderOf(section), CursorClass::kSeek);
  now.order->decided_by_values = !section->one_to_one();
  copies_.EndSection(*section, marked);
}

void SectionCuts::EndWith(std::unique_ptr<WorkOp> op, size_t hidden) {
  End(std::make_unique<OneToOne>(std::move(op)), dataset_.now().structure, hidden);
}

void SectionCuts::EndAsIs() {
  if (dataset_.now().cells == nullptr) EndWith(std::make_unique<AsIs>(dataset_.now().signature), 0);
}

void SectionCuts::EndAlone() {
  const ElementCells* const cells = dataset_.now().cells;
  if (cells == nullptr || cells->hides())
    EndWith(std::make_unique<AsIs>(dataset_.now().signature), 0);
}

void SectionCuts::EndEmpty() { EndWith(std::make_unique<AsNothing>(), 0); }

absl::Status SectionCuts::LeaveOutFailures() {
  if (!walk_.ignored()) return absl::OkStatus();
  if (!can_fail()) {
    if (!RowsMayDiffer(dataset_.now())) return absl::OkStatus();
    stages_.RaiseMeaning(dataset_.now().batch.stage,
                         {2, "one whose rows differ in shape is left out"});
    return LeaveOutBatches();
  }
  if (dataset_.batched()) return EndBatches();
  EndWith(std::make_unique<AsIs>(dataset_.now().signature), 0);
  return absl::OkStatus();
}

absl::Status SectionCuts::LeaveOutBatches() {
  Dataset& now = dataset_.now();
  absl::StatusOr<BatchProgram> program = BatchProgram::Create(now, stages_.names());
  if (!program.ok()) return program.status();
  auto section = std::make_shared<Section>();
  section->stage = walk_.number();
  section->stage_names = stages_.names();
  section->width = now.width;
  section->work = section->tree = now.work.get();
  section->batch = std::make_unique<BatchProgram>(*std::move(program));
  section->hands_on_rows = true;
  section->ignored = walk_.ignored();
  auto node = std::make_unique<OrderNode>();
  node->stage = section->stage;
  node->decided_by_values = true;
  node->inputs.push_back(std::move(now.order));
  node->make = OrderOf(std::move(section));
  now.order = std::move(node);
  return absl::OkStatus();
}

bool SectionCuts::can_fail() const {
  // A row may be larger than what it is padded to.
  return dataset_.is_computed() || dataset_.PadsRows() || LoadsValues(*dataset_.now().work);
}

absl::Status SectionCuts::EndBatches() {
  if (!dataset_.batched()) return absl::OkStatus();
  const bool marked = copies_.MarkInScope();
  Dataset& now = dataset_.now();
  absl::StatusOr<BatchProgram> program = BatchProgram::Create(now, stages_.names());
  if (!program.ok()) return program.status();
  Signature element = program->element();
  for (size_t i = 0; i < element.size(); ++i) {
    const TensorKind kind = program->tensors()[i].kind;
    if (kind == TensorKind::kRagged) element[i].type.form = RowForm::kPackedRagged;
    if (kind == TensorKind::kSparse) element[i].type.form = RowForm::kPackedSparse;
  }
  auto section = std::make_shared<Section>();
  section->stage = now.batch.stage;
  section->stage_names = stages_.names();
  section->width = now.width;
  section->batch = std::make_unique<BatchProgram>(*std::move(program));
  section->ignored = walk_.ignored();
  BeginAfter(*section, std::move(element), now.structure, /*hidden=*/0);

  // The batch's own stage, and not the one that is being built, ends here.
  auto node = std::make_unique<OrderNode>();
  node->stage = section->stage;
  node->inputs.push_back(std::move(now.order));
  node->make = OrderOf(section);
  node->decided_by_values = !section->one_to_one();
  now.order = std::move(node);
  now.batch_rows.reset();
  now.batch = BatchForm{};
  copies_.EndSection(*section, marked);
  return absl::OkStatus();
}

const ElementCells* SectionCuts::BeginInFront(Signature signature, std::string structure,
                                              const WorkNode** input) {
  const Dataset& now = dataset_.now();
  stages_.MarkOrder(*now.work);
  *input = now.work.get();
  return BeginInCells(walk_.number(), std::move(signature), std::move(structure), /*hidden=*/0,
                      /*of_batches=*/false);
}

void SectionCuts::BeginLoaded(std::unique_ptr<ColumnLoader> loader, std::string structure) {
  stages_.MarkOrder(*dataset_.now().work);
  dataset_.BeginLoaded(walk_.number(), std::move(loader), std::move(structure));
}

void SectionCuts::BeginAfter(Section& section, Signature signature, std::string structure,
                             size_t hidden) {
  section.work = section.tree = dataset_.now().work.get();
  section.cells = BeginInCells(section.stage, std::move(signature), std::move(structure), hidden,
                               section.batch != nullptr);
}

const ElementCells* SectionCuts::BeginInCells(int stage, Signature signature, std::string structure,
                                              size_t hidden, bool of_batches) {
  const bool locates_batch = of_batches || LocatesBatch(*dataset_.now().work).value_or(false);
  dataset_.BeginInCells(stage,
                        std::make_unique<ElementCells>(std::move(signature), hidden, locates_batch),
                        std::move(structure));
  return dataset_.now().cells;
}

std::optional<bool> SectionCuts::LocatesBatch(const WorkNode& work) const {
  if (work.kind == WorkNode::Kind::kLoad && work.inputs.empty()) {
    if (!files_.IsRead(work.first_file)) return std::nullopt;
    return work.loader->locates_batch();
  }
  // An element is known by the first of its references that lies in a file.
  std::optional<bool> found;
  for (const std::unique_ptr<WorkNode>& input : work.inputs) {
    const std::optional<bool> of_input = LocatesBatch(*input);
    if (!of_input) continue;
    found = found.value_or(false) || *of_input;
    if (work.kind != WorkNode::Kind::kBranch) break;
  }
  if (found && work.kind == WorkNode::Kind::kLoad) return work.loader->locates_batch();
  return found;
}

}  // namespace penstock
