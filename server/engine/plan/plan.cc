#include "server/engine/plan/plan.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/far_file.h"
#include "base/file_error.h"
#include "server/engine/plan/count_index.h"
#include "server/engine/plan/order_class.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/plan/records_of_others.h"
#include "server/engine/plan/whole_batches.h"
#include "server/engine/share/shareable_work.h"

namespace penstock {
namespace {

constexpr uint64_t kDefaultVariableBytes = uint64_t{64} << 20;
constexpr int64_t kMaxSlotBytes = int64_t{1} << 40;

}  // namespace

absl::StatusOr<std::shared_ptr<const PlanImpl>> PlanImpl::Create(BuiltPlan built, World world) {
  std::shared_ptr<PlanImpl> plan(new PlanImpl(std::move(built)));
  absl::Status status = plan->Finish(world);
  if (!status.ok()) return status;
  return plan;
}

WorkToShare PlanImpl::WorkOf(std::shared_ptr<const Plan> plan) {
  const auto& built = static_cast<const PlanImpl&>(*plan);
  return {plan,
          &built.spec(),
          &built.work(),
          &built.manifest(),
          &built.stage_names(),
          built.num_shareable()};
}

absl::Status PlanImpl::Finish(World world) {
  const Dataset& dataset = built_.dataset;
  absl::StatusOr<bool> divides_elements = false;
  if (!world.is_alone() && !dataset.batch_rows.has_value())
    divides_elements = DivideWholeBatches(world, &built_);
  if (!divides_elements.ok()) return divides_elements.status();
  // Who resolves references is known by it.
  LeaveRecordsOfOthers(world, built_.dataset);
  absl::StatusOr<BatchProgram> program =
      BatchProgram::Create(dataset, built_.stages.names(), world);
  if (!program.ok()) {
    return absl::Status(program.status().code(),
                        absl::StrCat("stage ", built_.stages.names().back(),
                                     ": the pipeline's output ", program.status().message()));
  }
  program_ = *std::move(program);
  if (!*divides_elements) {
    if (absl::Status status = CheckWorld(); !status.ok()) return status;
  }
  num_shareable_ = NumberShareable(*built_.dataset.work);
  const int64_t asked = built_.stages.spec().ring().slot_bytes();
  if (asked < 0 || asked > kMaxSlotBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("ring.slot_bytes: expected 0 to ", kMaxSlotBytes, ", found ", asked));
  }
  if (program_.has_variable()) variable_bytes_ = asked > 0 ? asked : kDefaultVariableBytes;
  return absl::OkStatus();
}

namespace {

void ExplainOrder(const OrderNode& node, const std::vector<std::string>& names, std::string* text) {
  if (node.is_mark) return ExplainOrder(*node.inputs[0], names, text);
  if (node.inputs.size() == 1) {
    ExplainOrder(*node.inputs[0], names, text);
    absl::StrAppend(text, " -> ");
  } else if (!node.inputs.empty()) {
    absl::StrAppend(text, "(");
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (i > 0) absl::StrAppend(text, ", ");
      ExplainOrder(*node.inputs[i], names, text);
    }
    absl::StrAppend(text, ") -> ");
  }
  absl::StrAppend(text, names[node.stage]);
  if (node.nested != nullptr) {
    absl::StrAppend(text, " { ");
    ExplainOrder(*node.nested, names, text);
    absl::StrAppend(text, " }");
  }
}

void ExplainWork(const WorkNode& node, const std::vector<std::string>& names, std::string* text) {
  for (const std::unique_ptr<WorkNode>& input : node.inputs) ExplainWork(*input, names, text);
  if (node.kind != WorkNode::Kind::kWork) return;
  absl::StrAppend(
      text, "work: ",
      absl::StrJoin(node.stages, " + ",
                    [&](std::string* out, int stage) { absl::StrAppend(out, names[stage]); }),
      "\n");
  for (absl::string_view line : absl::StrSplit(node.op->Describe(), '\n', absl::SkipEmpty()))
    absl::StrAppend(text, "  ", line, "\n");
}

}  // namespace

std::string PlanImpl::Explain() const {
  std::string text;
  const auto files = std::count_if(manifest().begin(), manifest().end(),
                                   [](const FileEntry& file) { return !file.path.empty(); });
  absl::StrAppend(&text, "files: ", files, "\norder: ");
  ExplainOrder(order(), stage_names(), &text);
  absl::StrAppend(&text, "\n");
  ExplainWork(work(), stage_names(), &text);
  absl::StrAppend(&text, "task: at most ", block_rows(), " rows; slot: ", program_.fixed_bytes(),
                  " bytes");
  if (variable_bytes_ > 0)
    absl::StrAppend(&text, " and up to ", variable_bytes_, " of variable size");
  absl::StrAppend(&text, "\n");
  absl::StrAppend(&text, ExplainWorld());
  for (const std::string& notice : built_.stages.notices())
    absl::StrAppend(&text, "note: ", notice, "\n");
  return text;
}

std::vector<Plan::NeededIndex> PlanImpl::NeededIndices() const {
  std::vector<NeededIndex> needed;
  for (const IndexedFiles& indexed : built_.files.needed_indices()) {
    for (uint32_t i = 0; i < indexed.files.count; ++i) {
      const RecordAccess& access = *indexed.format->access();
      if (!access.is_kept()) break;
      needed.push_back(
          {manifest()[indexed.files.first + i].path, indexed.on_damage, access.IndexKey()});
    }
  }
  return needed;
}

std::string PlanImpl::DescribeCursor() const {
  switch (WorstClass(order())) {
    case CursorClass::kSeek:
      return "seek: about 100 bytes, resumed in the same time at any step";
    case CursorClass::kReplayData: {
      uint64_t bytes = 0;
      for (const FileEntry& file : manifest()) bytes += file.size_bytes;
      return absl::StrCat(
          "replay data: about 100 bytes; values decide what waits in buffers, so the pass (of "
          "pack: one window of documents) is read and computed again up to the cursor, at most ",
          bytes, " bytes of files");
    }
    case CursorClass::kReplayOrder:
      break;
  }
  return "replay order: about 100 bytes; what waits in buffers, or lies after compressed bytes, "
         "is "
         "read again, and no record is parsed for it";
}

namespace {

// What a disk keeps of the plan's files on other machines stays as long as this lives; null where
// nothing is kept.
std::shared_ptr<void> NeedFiles(const PlanImpl& plan) {
  auto* const joined = dynamic_cast<JoinedFileSystem*>(&plan.files());
  if (joined == nullptr) return nullptr;
  std::vector<ListedFile> far;
  for (const FileEntry& file : plan.manifest())
    if (IsAddress(file.path)) far.push_back({file.path, file.size_bytes, file.version});
  return far.empty() ? nullptr : joined->Need(far);
}

}  // namespace

absl::StatusOr<std::shared_ptr<const Plan>> MakePlan(const v1::PipelineSpec& spec,
                                                     FileSystem& files, World world) {
  if (absl::Status status = world.Check(); !status.ok()) return status;
  absl::StatusOr<BuiltPlan> built = PlanBuilder(spec, files).Build();
  if (!built.ok()) return built.status();
  UseCountIndices(&*built);
  absl::StatusOr<std::shared_ptr<const PlanImpl>> plan = PlanImpl::Create(*std::move(built), world);
  if (!plan.ok()) return plan.status();
  std::shared_ptr<void> need = NeedFiles(**plan);
  if (need == nullptr) return std::shared_ptr<const Plan>(*std::move(plan));
  struct Needed {
    std::shared_ptr<void> need;
    std::shared_ptr<const PlanImpl> plan;
  };
  const auto needed = std::make_shared<Needed>(Needed{std::move(need), *std::move(plan)});
  return std::shared_ptr<const Plan>(needed, needed->plan.get());
}

}  // namespace penstock
