#include "server/engine/plan/stage_walk.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "base/stop_flag.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/spec/stage_files.h"
#include "server/engine/spec/stage_message.h"

namespace penstock {
namespace {

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

// Whether what is ignored of the stages in front is decided there.
bool DecidesIgnored(const OpTraits& traits) {
  return traits.joins_in_step || traits.reads_ignored != nullptr;
}

}  // namespace

bool StageWalk::is_last() const {
  const v1::PipelineSpec& spec = stages_.spec();
  return message_ == &spec.stage(spec.stage_size() - 1);
}

uint64_t StageWalk::DrawKey(int64_t seed) const {
  const std::string& given = message_->draw_name();
  return MixKey(static_cast<uint64_t>(seed), given.empty() ? name() : given);
}

std::vector<const v1::Stage*> StageWalk::Before() const {
  std::vector<const v1::Stage*> before;
  for (const v1::Stage& stage : *list_) {
    if (&stage == message_) break;
    before.push_back(&stage);
  }
  return before;
}

std::string StageWalk::MeaningsBefore() const {
  std::string meanings;
  const int first = stages_.NumberOf(list_->Get(0));
  for (int i = first; i < number_; ++i) {
    if (const int number = stages_.meanings()[i].number; number != 1)
      absl::StrAppend(&meanings, i - first, " means ", number, ";");
  }
  return meanings;
}

v1::Input* StageWalk::Input(int i) {
  google::protobuf::Message* const options = MutableOptionsOf(message_);
  return static_cast<v1::Input*>(
      options->GetReflection()->MutableRepeatedMessage(options, InputField(*options), i));
}

absl::Status StageWalk::BuildInput(int i, bool from_source) {
  const int number = number_;
  v1::Stage* const message = message_;
  if (absl::Status status = BuildList(Input(i)->mutable_stage(), from_source); !status.ok())
    return status;
  number_ = number;
  message_ = message;
  return absl::OkStatus();
}

absl::Status StageWalk::BuildList(StageList* stages, bool from_source) {
  if (depth_ == kMaxDepth) {
    return absl::InvalidArgumentError(
        absl::StrCat("stages inside of stages: limit ", kMaxDepth, " deep, found more"));
  }
  StageList* const outer = std::exchange(list_, stages);
  ++depth_;
  const std::optional<IgnoredFailures> around = ignored_;
  absl::Status status;
  bool may_differ = true;
  for (int i = 0; i < stages->size() && status.ok(); ++i) {
    // To look for it in front of each stage would take the square of their number.
    if (may_differ) ignored_ = FindIgnored(*stages, i, around);
    may_differ = DecidesIgnored(TraitsOf(stages->Get(i)));
    status = BuildStage(stages->Mutable(i), from_source && i == 0);
  }
  --depth_;
  ignored_ = around;
  list_ = outer;
  return status;
}

std::optional<IgnoredFailures> StageWalk::FindIgnored(
    const StageList& stages, int i, const std::optional<IgnoredFailures>& around) {
  for (; i < stages.size(); ++i) {
    const OpTraits& traits = TraitsOf(stages[i]);
    if (!DecidesIgnored(traits)) continue;
    if (traits.joins_in_step) return std::nullopt;
    IgnoredFailures ignored;
    // Its own stage tells what is wrong with them.
    if (!traits.reads_ignored(*OptionsOf(stages[i]), &ignored.limits).ok()) return std::nullopt;
    ignored.stage = stages_.names()[stages_.NumberOf(stages[i])];
    return ignored;
  }
  return around;
}

absl::Status StageWalk::BuildStage(v1::Stage* stage, bool is_first) {
  CheckStop();
  const int number = number_ = num_begun_++;
  message_ = stage;
  const std::string& name = stages_.names()[number];
  stage->set_name(name);
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
  stages_.SetMeaning(number, traits.meaning);
  GiveSeeds(stage);
  if (absl::Status status = GiveContents(stage, plan_.files()); !status.ok())
    return InStage(name, status);
  // The op may change its own message (to fill in a drawn seed): give it a copy to read.
  std::unique_ptr<google::protobuf::Message> options(OptionsOf(*stage)->New());
  options->CopyFrom(*OptionsOf(*stage));
  absl::Status status = op->plan(*options, plan_);
  if (status.ok() && StructureDepth(plan_.structure()) > kMaxStructureDepth) {
    status = absl::InvalidArgumentError(
        absl::StrCat("an element of parts in parts: limit ", kMaxStructureDepth,
                     " deep, found more; a map between gives flat ones"));
  }
  // The error of a nested stage names that one.
  if (status.ok() || number_ != number) return status;
  return InStage(name, status);
}

}  // namespace penstock
