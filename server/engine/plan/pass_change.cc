#include "server/engine/plan/pass_change.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "server/engine/plan/plan_change.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/spec_paths.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

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

// The files that the stage's source names; null where it names none.
const FieldDescriptor* FilesField(v1::Stage* stage, Message** options) {
  *options = MutableOptionsOf(stage);
  if (*options == nullptr) return nullptr;
  const FieldDescriptor* const field = FindOption(**options, TraitsOf(*stage).files).field;
  if (field == nullptr) return nullptr;
  return (*options)->GetReflection()->FieldSize(**options, field) > 0 ? field : nullptr;
}

bool Repeats(const v1::Stage& stage) { return TraitsOf(stage).passes != 0; }

}  // namespace

absl::StatusOr<std::optional<uint64_t>> PassesOf(const Plan& plan) {
  const auto& built = static_cast<const PlanImpl&>(plan);
  v1::PipelineSpec spec = plan.spec();
  const v1::Stage& last = *AllStages(spec)[static_cast<size_t>(built.order().stage)];
  if (Repeats(last)) {
    const Message& options = *OptionsOf(last);
    const FieldDescriptor* const passes = FindOption(options, TraitsOf(last).passes).field;
    const google::protobuf::Reflection& reflection = *options.GetReflection();
    const int64_t count = reflection.GetInt64(options, passes);
    if (!reflection.HasField(options, passes) || count < 0) return std::optional<uint64_t>();
    return std::optional<uint64_t>(static_cast<uint64_t>(count));
  }
  const auto& stages = plan.spec().stage();
  const auto repeat = std::find_if(stages.begin(), stages.end(), Repeats);
  if (repeat == stages.end()) {
    return absl::FailedPreconditionError(
        "no epoch follows: the pipeline has no `repeat`, which would have to be its last op that "
        "decides the "
        "order");
  }
  return absl::FailedPreconditionError(
      absl::StrCat("stage ", repeat->name(), ": epochs do not end where steps do, since ",
                   OpField(last)->name(), " (stage ", last.name(), ") stands behind ",
                   OpField(*repeat)->name(), "; put ", OpField(*repeat)->name(), " behind it"));
}

absl::Status CheckHasPass(const Plan& plan, uint64_t pass) {
  const absl::StatusOr<std::optional<uint64_t>> passes = PassesOf(plan);
  if (!passes.ok()) return passes.status();
  if (!*passes || pass < **passes) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("no epoch ", pass, " follows: the new repeat has the count ", **passes));
}

absl::Status CheckHasPassesOf(const Plan& from, const Plan& to) {
  const absl::StatusOr<std::optional<uint64_t>> before = PassesOf(from);
  if (!before.ok()) return before.status();
  const absl::StatusOr<std::optional<uint64_t>> passes = PassesOf(to);
  if (!passes.ok()) return passes.status();
  if (!*passes || (*before && **before <= **passes)) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "the new repeat has the count ", **passes, ", the present one ",
      *before ? absl::StrCat(**before) : "no end",
      ": whether there is an epoch for the change is not known yet; give it as many, or ask again "
      "when the steps that may have been taken already have been made again"));
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
    uint32_t end = files.first + files.count;
    // A file of arrays, which stands in an option of its own, is the last one.
    VisitPaths(stages[stage], [&](PathKind kind, const std::string* path) {
      if (kind == PathKind::kArrays && end > files.first && built.manifest()[end - 1].path == *path)
        --end;
    });
    for (uint32_t i = files.first; i < end; ++i)
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
    if (found != from.stage().end() && OpField(*found) == OpField(stage)) KeepSeeds(*found, &stage);
  }
}

}  // namespace penstock
