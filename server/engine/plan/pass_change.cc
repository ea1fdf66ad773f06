#include "server/engine/plan/pass_change.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/engine/plan/plan_change.h"
#include "server/engine/plan/plan_impl.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

const FieldDescriptor* OpOf(const v1::Stage& stage) {
  const auto* oneof = v1::Stage::descriptor()->FindOneofByName("op");
  return stage.GetReflection()->GetOneofFieldDescriptor(stage, oneof);
}

// A glob that matches this path alone.
std::string ExactGlob(const std::string& path) {
  if (path.find_first_of("*?[") == path.npos) return path;
  std::string glob;
  for (const char c : path) {
    if (c == '*' || c == '?' || c == '[') {
      absl::StrAppend(&glob, "[", std::string(1, c), "]");
    } else if (c == '\\') {
      glob += "\\\\";
    } else {
      glob += c;
    }
  }
  return glob;
}

// The `files` of the stage's op; null where it has none.
const FieldDescriptor* FilesField(v1::Stage* stage, Message** options) {
  const FieldDescriptor* op = OpOf(*stage);
  if (op == nullptr) return nullptr;
  *options = stage->GetReflection()->MutableMessage(stage, op);
  const FieldDescriptor* field = (*options)->GetDescriptor()->FindFieldByName("files");
  const bool is_list = field != nullptr && field->is_repeated() &&
                       field->cpp_type() == FieldDescriptor::CPPTYPE_STRING;
  return is_list && (*options)->GetReflection()->FieldSize(**options, field) > 0 ? field : nullptr;
}

}  // namespace

absl::StatusOr<std::optional<uint64_t>> PassesOf(const Plan& plan) {
  const auto& built = static_cast<const PlanImpl&>(plan);
  v1::PipelineSpec spec = plan.spec();
  const v1::Stage& last = *AllStages(spec)[static_cast<size_t>(built.order().stage)];
  if (last.has_repeat()) {
    const v1::Repeat& repeat = last.repeat();
    if (!repeat.has_count() || repeat.count() < 0) return std::optional<uint64_t>();
    return std::optional<uint64_t>(static_cast<uint64_t>(repeat.count()));
  }
  const auto& stages = plan.spec().stage();
  const auto repeat = std::find_if(stages.begin(), stages.end(),
                                   [](const v1::Stage& stage) { return stage.has_repeat(); });
  if (repeat == stages.end()) {
    return absl::FailedPreconditionError(
        "no epoch follows: the pipeline has no `repeat`, which would have to be its last op that "
        "decides the "
        "order");
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "stage ", repeat->name(), ": epochs do not end where steps do, since ", OpOf(last)->name(),
      " (stage ", last.name(), ") stands behind repeat; put repeat behind it"));
}

absl::Status CheckHasPass(const Plan& plan, uint64_t pass) {
  const absl::StatusOr<std::optional<uint64_t>> passes = PassesOf(plan);
  if (!passes.ok()) return passes.status();
  if (!*passes || pass < **passes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no epoch ", pass, " follows: the new repeat has the count ", **passes));
}

absl::Status CheckPassChange(const Plan& first, const Plan& from, const Plan& to) {
  for (const Plan* plan : {&from, &to}) {
    if (const auto passes = PassesOf(*plan); !passes.ok()) return passes.status();
  }
  if (to.variable_bytes() > first.variable_bytes()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "consumers would get another element: its slots need ", to.variable_bytes(),
        " bytes for what has no fixed size, those of the beginning have ", first.variable_bytes()));
  }
  return CheckSameElement(first, to);
}

google::protobuf::RepeatedPtrField<v1::Stage> StagesWithFiles(const Plan& plan) {
  const auto& built = static_cast<const PlanImpl&>(plan);
  v1::PipelineSpec spec = plan.spec();
  const std::vector<v1::Stage*> stages = AllStages(spec);
  std::vector<bool> cleared(stages.size());
  for (size_t source = 0; source < built.sources().size(); ++source) {
    const auto stage = static_cast<size_t>(built.source_stages()[source]);
    Message* options = nullptr;
    const FieldDescriptor* field = FilesField(stages[stage], &options);
    if (field == nullptr) continue;
    if (!cleared[stage]) options->GetReflection()->ClearField(options, field);
    cleared[stage] = true;
    const FileRange& files = built.sources()[source];
    for (uint32_t i = files.first; i < files.first + files.count; ++i)
      options->GetReflection()->AddString(options, field, ExactGlob(built.manifest()[i].path));
  }
  return spec.stage();
}

void KeepSeedsOf(const v1::PipelineSpec& from, v1::PipelineSpec* to) {
  const std::vector<std::string> names = StageNames(*to);
  const std::vector<v1::Stage*> all = AllStages(*to);
  for (size_t i = 0; i < all.size(); ++i) all[i]->set_name(names[i]);
  for (v1::Stage& stage : *to->mutable_stage()) {
    const auto found =
        std::find_if(from.stage().begin(), from.stage().end(),
                     [&stage](const v1::Stage& old) { return old.name() == stage.name(); });
    if (found != from.stage().end() && OpOf(*found) == OpOf(stage)) KeepSeeds(*found, &stage);
  }
}

}  // namespace penstock
