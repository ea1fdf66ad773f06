#include "server/engine/plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "server/engine/op_registry.h"
#include "server/engine/plan_impl.h"

namespace penstock {
namespace {

constexpr uint32_t kMaxBlockRows = 64;
constexpr size_t kBlockBytes = 800 << 10;

// The field of Stage that is set, or null.
const google::protobuf::FieldDescriptor* OpField(const v1::Stage& stage) {
  const google::protobuf::OneofDescriptor* op = v1::Stage::descriptor()->FindOneofByName("op");
  return stage.GetReflection()->GetOneofFieldDescriptor(stage, op);
}

absl::Status InStage(const std::string& stage, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat("stage ", stage, ": ", status.message()));
}

}  // namespace

std::vector<std::string> StageNames(const v1::PipelineSpec& spec) {
  std::vector<std::string> names;
  std::map<std::string, int> uses;
  for (const v1::Stage& stage : spec.stage()) {
    const google::protobuf::FieldDescriptor* field = OpField(stage);
    const std::string op = field ? std::string(field->name()) : "stage";
    const int ordinal = ++uses[op];
    if (!stage.name().empty()) {
      names.push_back(stage.name());
    } else {
      names.push_back(ordinal == 1 ? op : absl::StrCat(op, "_", ordinal));
    }
  }
  return names;
}

PlanBuilder::PlanBuilder(v1::PipelineSpec spec, FileSystem& files)
    : spec_(std::move(spec)), files_(files), stage_names_(StageNames(spec_)) {}

const Manifest& PlanBuilder::SetSource(Manifest manifest) {
  manifest_ = std::make_unique<Manifest>(std::move(manifest));
  signature_ = {{"value", {DType::kString, {}}}};
  return *manifest_;
}

void PlanBuilder::AddWork(std::unique_ptr<WorkOp> op) {
  signature_ = op->output();
  if (!work_.empty()) {
    if (std::unique_ptr<WorkOp> fused = work_.back().op->FusedWith(*op)) {
      work_.back().op = std::move(fused);
      work_.back().stages.push_back(stage_);
      return;
    }
  }
  work_.push_back({{stage_}, std::move(op)});
}

void PlanBuilder::SetBatch(uint32_t rows, bool drop_remainder) {
  batch_rows_ = rows;
  drop_remainder_ = drop_remainder;
}

absl::Status BuildStages(PlanBuilder& builder) {
  const v1::PipelineSpec& spec = builder.spec_;
  if (spec.stage_size() == 0)
    return absl::InvalidArgumentError(
        "the spec has no stage; the first is a source such as tfrecord");
  std::set<std::string> names;
  for (const std::string& name : builder.stage_names_) {
    if (!names.insert(name).second)
      return absl::InvalidArgumentError(absl::StrCat("two stages are called \"", name, "\""));
  }
  for (int i = 0; i < spec.stage_size(); ++i) {
    builder.stage_ = i;
    const v1::Stage& stage = spec.stage(i);
    const google::protobuf::FieldDescriptor* field = OpField(stage);
    if (field == nullptr)
      return InStage(builder.stage(), absl::InvalidArgumentError("names no op"));
    const OpDefinition* op = FindOp(field->name());
    if (op == nullptr)
      return InStage(builder.stage(), absl::UnimplementedError(absl::StrCat(
                                          "the op ", field->name(), " is not in this build")));
    if (op->is_source != (i == 0)) {
      return InStage(
          builder.stage(),
          absl::InvalidArgumentError(i == 0 ? "the first stage must be a source such as tfrecord"
                                            : "a source can only be the first stage"));
    }
    // The op may change its own message (to fill in a drawn seed): give it a copy to read.
    std::unique_ptr<google::protobuf::Message> options(
        stage.GetReflection()->GetMessage(stage, field).New());
    options->CopyFrom(stage.GetReflection()->GetMessage(stage, field));
    absl::Status status = op->plan(*options, builder);
    if (!status.ok()) return InStage(builder.stage(), status);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const PlanImpl>> PlanImpl::Create(PlanBuilder builder) {
  std::shared_ptr<PlanImpl> plan(new PlanImpl(std::move(builder)));
  absl::Status status = plan->Finish();
  if (!status.ok()) return status;
  return plan;
}

absl::Status PlanImpl::Finish() {
  for (int i = 0; i < built_.spec_.stage_size(); ++i)
    built_.spec_.mutable_stage(i)->set_name(built_.stage_names_[i]);
  const bool batched = built_.batched();
  size_t row_bytes = 0;
  for (const Feature& feature : built_.signature_) {
    const std::optional<int64_t> bytes = NumBytes(feature.type);
    if (!bytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("stage ", built_.stage_names_.back(), ": the pipeline's output \"",
                       feature.name, "\" is ", TypeToString(feature.type),
                       "; expected a type of fixed size: strings and unknown axes cannot be handed "
                       "to a trainer yet (parse_example with bytes { length: N }, "
                       "decode or resize it in a map)"));
    }
    BatchTensor tensor{feature.name, feature.type, batched};
    Feature seen = feature;
    if (batched) {
      const int64_t rows = *built_.batch_rows_;
      tensor.type.shape.insert(tensor.type.shape.begin(), rows);
      seen.type.shape.insert(seen.type.shape.begin(), built_.drop_remainder_ ? rows : kUnknownSize);
    }
    const std::optional<int64_t> tensor_bytes = NumBytes(tensor.type);
    uint64_t total = 0;
    if (!tensor_bytes ||
        __builtin_add_overflow(slot_bytes_, static_cast<uint64_t>(*tensor_bytes), &total)) {
      return absl::InvalidArgumentError(absl::StrCat("output \"", feature.name,
                                                     "\": the size of a batch of ",
                                                     TypeToString(tensor.type), " overflows"));
    }
    slot_bytes_ = total;
    row_bytes += *bytes;
    row_bytes_.push_back(*bytes);
    element_.push_back(std::move(seen));
    tensors_.push_back(std::move(tensor));
  }
  const uint32_t fitting =
      std::clamp<size_t>(kBlockBytes / std::max<size_t>(row_bytes, 1), 1, kMaxBlockRows);
  block_rows_ = 1;
  while (block_rows_ * 2 <= fitting) block_rows_ *= 2;
  return absl::OkStatus();
}

std::string PlanImpl::Explain() const {
  std::string text;
  absl::StrAppend(&text, "files: ", manifest().size(), "\n");
  absl::StrAppend(&text, "order: ",
                  absl::StrJoin(order(), " -> ",
                                [this](std::string* out, const PlannedOrder& op) {
                                  absl::StrAppend(out, stage_names()[op.stage]);
                                }),
                  "\n");
  for (const PlannedWork& work : built_.work_) {
    absl::StrAppend(&text, "work: ",
                    absl::StrJoin(work.stages, " + ",
                                  [this](std::string* out, int stage) {
                                    absl::StrAppend(out, stage_names()[stage]);
                                  }),
                    "\n");
    for (absl::string_view line : absl::StrSplit(work.op->Describe(), '\n', absl::SkipEmpty()))
      absl::StrAppend(&text, "  ", line, "\n");
  }
  absl::StrAppend(&text, "task: ", block_rows_, " rows; slot: ", slot_bytes_, " bytes\n");
  for (const std::string& notice : built_.notices_) absl::StrAppend(&text, "note: ", notice, "\n");
  return text;
}

absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const v1::PipelineSpec& spec,
                                                     FileSystem& files) {
  PlanBuilder builder(spec, files);
  absl::Status status = BuildStages(builder);
  if (!status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const PlanImpl>> plan = PlanImpl::Create(std::move(builder));
  if (!plan.ok()) return plan.status();
  return std::shared_ptr<const Plan>(*std::move(plan));
}

}  // namespace penstock
