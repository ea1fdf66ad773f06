#include "server/engine/plan/plan_builder.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/row_shape.h"
#include "base/stop_flag.h"
#include "server/engine/compute/batch_program.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/plan/plan.h"
#include "server/engine/section/section_op.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

using StageList = google::protobuf::RepeatedPtrField<v1::Stage>;

bool AnyCallsRandom(v1::PipelineSpec& spec) {
  const std::vector<v1::Stage*> stages = AllStages(spec);
  return std::any_of(stages.begin(), stages.end(),
                     [](const v1::Stage* stage) { return CallsRandom(*stage); });
}

// An expression's error names its stage itself.
absl::Status InStage(const std::string& stage, const absl::Status& status) {
  if (absl::StartsWith(status.message(), "stage \"")) return status;
  return absl::Status(status.code(), absl::StrCat("stage ", stage, ": ", status.message()));
}

// How deep the tuples and dicts of a structure stand in one another.
int StructureDepth(const std::string& structure) {
  int depth = 0, deepest = 0;
  bool quoted = false;
  for (size_t i = 0; i < structure.size(); ++i) {
    const char c = structure[i];
    if (quoted && c == '\\') {
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (!quoted && (c == '[' || c == '{')) {
      deepest = std::max(deepest, ++depth);
    } else if (!quoted && (c == ']' || c == '}')) {
      --depth;
    }
  }
  return deepest;
}

}  // namespace

PlanBuilder::PlanBuilder(v1::PipelineSpec spec, FileSystem& files)
    : spec_(std::move(spec)),
      files_(files),
      stage_names_(StageNames(spec_)),
      stage_kinds_(stage_names_.size(), StageKind::kHint),
      meanings_(stage_names_.size()),
      draws_(AnyCallsRandom(spec_)) {}

uint64_t PlanBuilder::DrawKey(int64_t seed) const {
  const std::string& given = stage_message_->draw_name();
  return MixKey(static_cast<uint64_t>(seed), given.empty() ? stage() : given);
}

FileRange PlanBuilder::AddFiles(Manifest files) {
  const FileRange range{static_cast<uint32_t>(manifest_->size()),
                        static_cast<uint32_t>(files.size())};
  sources_.push_back(range);
  source_stages_.push_back(stage_);
  manifest_->insert(manifest_->end(), std::make_move_iterator(files.begin()),
                    std::make_move_iterator(files.end()));
  return range;
}

Dataset PlanBuilder::MakeLeaf(std::unique_ptr<ColumnLoader> loader, FileRange files,
                              OrderFactory make) {
  stage_kinds_[stage_] = StageKind::kOrder;
  Dataset dataset;
  dataset.signature = loader->output();
  dataset.structure = loader->is_dict() ? DictStructure(loader->output()) : "null";
  dataset.width = 1;
  dataset.work = std::make_unique<WorkNode>();
  dataset.work->stages = {stage_};
  dataset.work->output = loader->output();
  dataset.work->loader = std::move(loader);
  dataset.work->first_file = files.first;
  dataset.copies.unkeyed = draws_ && scope_.has_value();
  if (make != nullptr) {
    dataset.order = std::make_unique<OrderNode>();
    dataset.order->stage = stage_;
    dataset.order->make = std::move(make);
  }
  return dataset;
}

void PlanBuilder::SetSource(std::unique_ptr<ColumnLoader> loader, FileRange files,
                            OrderFactory make, CursorClass cursor_class) {
  dataset_ = MakeLeaf(std::move(loader), files, std::move(make));
  dataset_.order->cursor_class = cursor_class;
}

void PlanBuilder::AddOrder(OrderFactory make, CursorClass cursor_class) {
  stage_kinds_[stage_] = StageKind::kOrder;
  dataset_.indexed.reset();
  auto node = std::make_unique<OrderNode>();
  node->stage = stage_;
  node->make = std::move(make);
  node->cursor_class = cursor_class;
  node->inputs.push_back(std::move(dataset_.order));
  dataset_.order = std::move(node);
}

void PlanBuilder::AddWork(std::unique_ptr<WorkOp> op, std::string structure) {
  stage_kinds_[stage_] = StageKind::kWork;
  if (dataset_.copies.changed && op->draws()) RaiseDrawing()(stage_);
  dataset_.signature = op->output();
  dataset_.structure = structure.empty() ? DictStructure(op->output()) : std::move(structure);
  dataset_.indexed.reset();
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
      before.stages.push_back(stage_);
      before.parts.push_back({stage_, batched(), std::move(op)});
      return;
    }
  }
  auto node = std::make_unique<WorkNode>();
  node->kind = WorkNode::Kind::kWork;
  node->stages = {stage_};
  node->output = op->output();
  node->op = std::move(op);
  node->parts.push_back({stage_, batched(), nullptr});
  node->inputs.push_back(std::move(dataset_.work));
  dataset_.work = std::move(node);
}

void PlanBuilder::EndSection(std::unique_ptr<SplitOp> split, std::string structure, size_t hidden) {
  const bool marked = scope_ && MarkCopies();
  if (dataset_.copies.changed && split->draws()) RaiseDrawing()(stage_);
  MarkOrder(*dataset_.work);
  auto section = std::make_shared<Section>();
  section->stage = stage_;
  section->stage_names = stage_names_;
  section->width = dataset_.width;
  section->block_rows = BlockRows(
      std::max(EstimatedRowBytes(dataset_.signature), EstimatedRowBytes(split->output())));
  section->split = std::move(split);
  section->ignored = ignored_;
  BeginAfter(section, section->split->output(), std::move(structure), hidden);
  AddOrder([section](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<SectionOp>(context, section, std::move(inputs[0]));
  });
  dataset_.order->decided_by_values = !section->one_to_one();
  EndCopies(*section, marked);
}

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

}  // namespace

void PlanBuilder::EndSectionWith(std::unique_ptr<WorkOp> op, size_t hidden) {
  EndSection(std::make_unique<OneToOne>(std::move(op)), dataset_.structure, hidden);
}

void PlanBuilder::EndSectionAsIs() {
  if (cells() == nullptr) EndSectionWith(std::make_unique<AsIs>(signature()), 0);
}

void PlanBuilder::EndSectionAlone() {
  if (cells() == nullptr || cells()->hides()) {
    EndSectionWith(std::make_unique<AsIs>(signature()), 0);
  }
}

void PlanBuilder::EndSectionEmpty() { EndSectionWith(std::make_unique<AsNothing>(), 0); }

namespace {

// Whether batches may fail by the shapes of their rows, which have been computed in front of them: behind the batch op nothing has left
// them out.
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

// Such batches go through a section, which hands on the rows of those that are one. They stay batches: of their rows ranks have parts.
absl::Status LeaveOutBatches(int stage, absl::Span<const std::string> stage_names,
                             const IgnoredFailures& ignored, Dataset* dataset) {
  absl::StatusOr<BatchProgram> program = BatchProgram::Create(*dataset, stage_names);
  if (!program.ok()) return program.status();
  auto section = std::make_shared<Section>();
  section->stage = stage;
  section->stage_names = stage_names;
  section->width = dataset->width;
  section->work = section->tree = dataset->work.get();
  section->batch = std::make_unique<BatchProgram>(*std::move(program));
  section->hands_on_rows = true;
  section->ignored = ignored;
  auto node = std::make_unique<OrderNode>();
  node->stage = stage;
  node->decided_by_values = true;
  node->inputs.push_back(std::move(dataset->order));
  node->make = [section](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<SectionOp>(context, section, std::move(inputs[0]));
  };
  dataset->order = std::move(node);
  return absl::OkStatus();
}

}  // namespace

absl::Status PlanBuilder::LeaveOutFailures() {
  if (!ignored_) return absl::OkStatus();
  if (!can_fail()) {
    if (!RowsMayDiffer(dataset_)) return absl::OkStatus();
    RaiseMeaningOf(dataset_.batch.stage, {2, "one whose rows differ in shape is left out"});
    return LeaveOutBatches(stage_, stage_names_, *ignored_, &dataset_);
  }
  if (batched()) return EndBatches();
  EndSectionWith(std::make_unique<AsIs>(signature()), 0);
  return absl::OkStatus();
}

bool PlanBuilder::can_fail() const {
  // A row may be larger than what it is padded to.
  return is_computed() || PadsRows();
}

absl::Status PlanBuilder::EndBatches() {
  if (!batched()) return absl::OkStatus();
  const bool marked = scope_ && MarkCopies();
  absl::StatusOr<BatchProgram> program = BatchProgram::Create(dataset_, stage_names_);
  if (!program.ok()) return program.status();
  Signature element = program->element();
  for (size_t i = 0; i < element.size(); ++i) {
    const TensorKind kind = program->tensors()[i].kind;
    if (kind == TensorKind::kRagged) element[i].type.form = RowForm::kPackedRagged;
    if (kind == TensorKind::kSparse) element[i].type.form = RowForm::kPackedSparse;
  }
  auto section = std::make_shared<Section>();
  section->stage = dataset_.batch.stage;
  section->stage_names = stage_names_;
  section->width = dataset_.width;
  section->batch = std::make_unique<BatchProgram>(*std::move(program));
  section->ignored = ignored_;
  BeginAfter(section, std::move(element), dataset_.structure);

  auto node = std::make_unique<OrderNode>();
  node->stage = section->stage;
  node->inputs.push_back(std::move(dataset_.order));
  node->make = [section](FrontContext& context, OrderInputs inputs) {
    return std::make_unique<SectionOp>(context, section, std::move(inputs[0]));
  };
  node->decided_by_values = !section->one_to_one();
  dataset_.order = std::move(node);
  dataset_.batch_rows.reset();
  dataset_.batch = BatchForm{};
  EndCopies(*section, marked);
  return absl::OkStatus();
}

const ElementCells* PlanBuilder::BeginInFront(Signature signature, std::string structure,
                                              const WorkNode** input) {
  MarkOrder(*dataset_.work);
  *input = dataset_.work.get();
  return BeginInCells(stage_, std::move(signature), std::move(structure), /*hidden=*/0);
}

// The dataset becomes that of the elements which a section hands over.
void PlanBuilder::BeginAfter(const std::shared_ptr<Section>& section, Signature signature,
                             std::string structure, size_t hidden) {
  section->work = section->tree = dataset_.work.get();
  section->cells = BeginInCells(section->stage, std::move(signature), std::move(structure), hidden,
                                section->batch != nullptr);
}

std::optional<bool> PlanBuilder::LocatesBatch(const WorkNode& work) const {
  if (work.kind == WorkNode::Kind::kLoad && work.inputs.empty()) {
    if (work.first_file >= manifest_->size() || (*manifest_)[work.first_file].path.empty())
      return std::nullopt;
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

const ElementCells* PlanBuilder::BeginInCells(int stage, Signature signature, std::string structure,
                                              size_t hidden, bool of_batches) {
  const bool locates_batch = of_batches || LocatesBatch(*dataset_.work).value_or(false);
  auto cells = std::make_unique<ElementCells>(std::move(signature), hidden, locates_batch);
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
  return dataset_.cells;
}

// Where values decide the order, what computes them belongs to it.
void PlanBuilder::MarkOrder(const WorkNode& node) {
  for (const int stage : node.stages) stage_kinds_[stage] = StageKind::kOrder;
  for (const std::unique_ptr<WorkNode>& input : node.inputs) MarkOrder(*input);
}

void PlanBuilder::SetBatch(uint32_t rows, BatchForm form) {
  dataset_.batch_rows = rows;
  form.stage = stage_;
  for (size_t i = 0; i < form.shapes.size(); ++i) dataset_.signature[i].type.shape = form.shapes[i];
  dataset_.batch = std::move(form);
}

void PlanBuilder::PadBatch(std::vector<std::string> values) {
  dataset_.batch.kind = BatchForm::Kind::kPadded;
  dataset_.batch.shapes.clear();
  for (const Feature& feature : dataset_.signature)
    dataset_.batch.shapes.push_back(feature.type.shape);
  dataset_.batch.values = std::move(values);
}

bool PlanBuilder::PadsRows() const {
  if (batched() && dataset_.batch.kind == BatchForm::Kind::kSparse) return true;
  if (!batched() || dataset_.batch.kind != BatchForm::Kind::kPadded) return false;
  for (size_t i = 0; i < dataset_.signature.size(); ++i) {
    const Shape& shape = dataset_.signature[i].type.shape;
    if (dataset_.signature[i].type.form != RowForm::kPlain) continue;
    if (HasUnknownAxes(shape) || shape != dataset_.work->output[i].type.shape) return true;
  }
  return false;
}

void PlanBuilder::SetRecordFiles(FileRange files, bool has_index) {
  for (uint32_t i = 0; i < files.count; ++i) {
    FileEntry& entry = (*manifest_)[files.first + i];
    entry.is_one_element = false;
    entry.has_index = has_index;
  }
}

absl::Status PlanBuilder::Build() {
  if (spec_.stage_size() == 0)
    return absl::InvalidArgumentError(
        "the spec has no stage; the first is a source such as tfrecord");
  if (stage_names_.size() > kMaxStages) {
    return absl::InvalidArgumentError(absl::StrCat("too many stages: limit ", kMaxStages,
                                                   " with those inside of others, found ",
                                                   stage_names_.size()));
  }
  std::set<std::string> names;
  for (const std::string& name : stage_names_) {
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("two stages are called \"", name, "\""));
  }
  return BuildStages(spec_.mutable_stage());
}

absl::Status PlanBuilder::BuildStages(StageList* stages, bool from_source) {
  if (depth_ == kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("stages inside of stages: limit ", kMaxDepth, " deep, found more"));
  }
  StageList* const outer = std::exchange(stage_list_, stages);
  ++depth_;
  const std::optional<IgnoredFailures> around = ignored_;
  absl::Status status;
  for (int i = 0; i < stages->size() && status.ok(); ++i) {
    ignored_ = FindIgnored(*stages, i, around);
    status = BuildStage(stages->Mutable(i), from_source && i == 0);
  }
  --depth_;
  ignored_ = around;
  stage_list_ = outer;
  return status;
}

std::optional<IgnoredFailures> PlanBuilder::FindIgnored(
    const StageList& stages, int i, const std::optional<IgnoredFailures>& around) {
  for (; i < stages.size(); ++i) {
    const OpTraits& traits = TraitsOf(stages[i]);
    if (traits.joins_in_step) return std::nullopt;
    if (traits.reads_ignored == nullptr) continue;
    IgnoredFailures ignored;
    // Its own stage tells what is wrong with them.
    if (!traits.reads_ignored(*OptionsOf(stages[i]), &ignored.limits).ok()) return std::nullopt;
    const std::vector<v1::Stage*> all = AllStages(spec_);
    ignored.stage = stage_names_[std::find(all.begin(), all.end(), &stages[i]) - all.begin()];
    return ignored;
  }
  return around;
}

void PlanBuilder::RaiseMeaning(OpMeaning meaning) { RaiseMeaningOf(stage_, std::move(meaning)); }

void PlanBuilder::RaiseMeaningOf(int stage, OpMeaning meaning) {
  OpMeaning& now = meanings_[stage];
  if (meaning.number > now.number) now = std::move(meaning);
}

PlanBuilder::Upstream PlanBuilder::upstream() {
  Upstream before;
  const std::vector<v1::Stage*> all = AllStages(spec_);
  const auto first = std::find(all.begin(), all.end(), &stage_list_->Get(0)) - all.begin();
  for (auto i = first; i < stage_; ++i) {
    if (const int number = meanings_[i].number; number != 1)
      absl::StrAppend(&before.meanings, i - first, " means ", number, ";");
  }
  // What is kept has the paths of its elements, for whatever draws behind it.
  if (dataset_.copies.changed) before.meanings.append("paths of copies;");
  for (const v1::Stage& stage : *stage_list_) {
    if (&stage == stage_message_) break;
    before.stages.push_back(&stage);
  }
  // Sources make their files known in the order of the text, so that those of one list lie side by side.
  before.first_file = dataset_.work->LowestFile();
  before.files.assign(manifest_->begin() + before.first_file, manifest_->end());
  return before;
}

absl::Status PlanBuilder::BuildStage(v1::Stage* stage, bool is_first) {
  CheckStop();
  const int index = stage_ = num_stages_++;
  stage_message_ = stage;
  stage->set_name(stage_names_[index]);
  const std::string& name = stage_names_[index];
  const google::protobuf::FieldDescriptor* field = OpField(*stage);
  if (field == nullptr) return InStage(name, absl::InvalidArgumentError("names no op"));
  const OpDefinition* op = FindOp(field->name());
  if (op == nullptr)
    return InStage(name, absl::UnimplementedError(
                             absl::StrCat("the op ", field->name(), " is not in this build")));
  const OpTraits& traits = TraitsOf(field);
  if (traits.place == (is_first ? OpPlace::kInside : OpPlace::kSource)) {
    return InStage(name, absl::InvalidArgumentError(
                             is_first ? "the first stage must be a source such as tfrecord"
                                      : "a source can only be the first stage"));
  }
  if (!stage->draw_name().empty() && traits.seed == 0) {
    return InStage(
        name, absl::InvalidArgumentError(absl::StrCat("draw_name is for ops with a seed, which ",
                                                      field->name(), " has not")));
  }
  meanings_[index] = traits.meaning;
  GiveSeeds(stage);
  // The op may change its own message (to fill in a drawn seed): give it a copy to read.
  std::unique_ptr<google::protobuf::Message> options(OptionsOf(*stage)->New());
  options->CopyFrom(*OptionsOf(*stage));
  absl::Status status = op->plan(*options, *this);
  if (status.ok() && StructureDepth(dataset_.structure) > kMaxStructureDepth) {
    status = absl::InvalidArgumentError(
        absl::StrCat("an element of parts in parts: limit ", kMaxStructureDepth,
                     " deep, found more; a map between gives flat ones"));
  }
  // The error of a nested stage names that one.
  if (status.ok() || stage_ != index) return status;
  return InStage(name, status);
}

}  // namespace penstock
