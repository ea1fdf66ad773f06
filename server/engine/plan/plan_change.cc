#include "server/engine/plan/plan_change.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "google/protobuf/util/message_differencer.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/spec/op_traits.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool Equal(const Message& a, const Message& b) {
  return google::protobuf::util::MessageDifferencer::Equals(a, b);
}

// Whether the two, of one op, differ in options that may change and in nothing else.
bool DifferOnlyInWhatMayChange(const v1::Stage& from, const v1::Stage& to) {
  v1::Stage a = from, b = to;
  for (v1::Stage* stage : {&a, &b}) {
    Message* const options = MutableOptionsOf(stage);
    for (const Option option : TraitsOf(*stage).may_change) ClearOption(options, option);
  }
  return Equal(a, b);
}

// Whether the op of both has options that may change, and stages of its own, which may not.
bool ChangesButItsInputs(const v1::Stage& from, const v1::Stage& to) {
  return OpField(from) == OpField(to) && !TraitsOf(from).may_change.empty() &&
         InputField(*OptionsOf(from)) != nullptr;
}

// "the batch_size of batch and padded_batch": all options that may change while a pipeline runs.
std::string AllThatMayChange() {
  std::map<std::string, std::vector<std::string>> ops;
  const auto* oneof = v1::Stage::descriptor()->FindOneofByName("op");
  for (int i = 0; i < oneof->field_count(); ++i) {
    const FieldDescriptor* const op = oneof->field(i);
    for (const Option option : TraitsOf(op).may_change)
      ops[OptionField(*op->message_type(), option)->name()].push_back(op->name());
  }
  return absl::StrJoin(ops, " and ", [](std::string* out, const auto& option) {
    absl::StrAppend(out, "the ", option.first, " of ", absl::StrJoin(option.second, " and "));
  });
}

// The options of `to` that may change become those of `from`, which is of the same op.
void TakeWhatMayChange(const v1::Stage& from, v1::Stage* to) {
  Message* const options = MutableOptionsOf(to);
  const std::unique_ptr<Message> taken(options->New());
  taken->CopyFrom(*OptionsOf(from));
  for (const Option option : TraitsOf(*to).may_change) {
    ClearOption(options, option);
    const FoundOption<Message> given = FindOption(taken.get(), option);
    const FoundOption<Message> place = FindOption(options, option);
    if (given.options == nullptr || place.options == nullptr) continue;
    place.options->GetReflection()->SwapFields(place.options, given.options, {place.field});
  }
}

bool IsBatch(const v1::Stage& stage) { return TraitsOf(stage).batch_size != 0; }

// Whether some op makes batches ahead of the front, as elements of the stream: of batches, or of a
// map of whole batches.
bool HasEarlyBatches(const Plan& plan) {
  const auto& stages = plan.spec().stage();
  const int64_t batches = std::count_if(stages.begin(), stages.end(), IsBatch);
  return batches > 1 ||
         (batches == 1 && (plan.tensors().empty() || !plan.tensors().front().batched));
}

// The kinds of the stages at the top, without nested ones.
std::vector<StageKind> TopKinds(const PlanImpl& plan) {
  v1::PipelineSpec spec = plan.spec();
  const std::vector<v1::Stage*> all = AllStages(spec);
  std::vector<StageKind> kinds;
  for (size_t i = 0, top = 0; i < all.size(); ++i) {
    if (static_cast<int>(top) == spec.stage_size() || all[i] != &spec.stage(static_cast<int>(top)))
      continue;
    kinds.push_back(plan.stage_kinds()[i]);
    ++top;
  }
  return kinds;
}

// Checks one stage; `behind`: the first order op behind it that keeps elements, or "".
absl::Status CheckStage(const v1::Stage& from, const v1::Stage& to, StageKind kind,
                        const std::string& behind) {
  if (Equal(from, to)) return absl::OkStatus();
  const FieldDescriptor* const op = OpField(from);
  const std::string address = absl::StrCat("stage ", from.name(), ": ");
  if (OpField(to) != op || to.name() != from.name()) {
    return absl::FailedPreconditionError(absl::StrCat(
        address, op->name(), " cannot become another op while the pipeline runs, found ",
        OpField(to) == nullptr ? "none" : OpField(to)->name(), " \"", to.name(), "\""));
  }
  if (kind != StageKind::kOrder) return absl::OkStatus();
  if (!DifferOnlyInWhatMayChange(from, to)) {
    return absl::FailedPreconditionError(
        absl::StrCat(address, op->name(),
                     " decides the order and cannot be changed while the pipeline runs, but for ",
                     AllThatMayChange()));
  }
  if (behind.empty()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(address, op->name(), " cannot be changed while the pipeline runs: ", behind,
                   " behind it keeps elements that were chosen before"));
}

}  // namespace

absl::Status CheckSameElement(const Plan& first, const Plan& to) {
  const auto refuse = [](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("consumers would get another element: ", what));
  };
  if (first.structure() != to.structure() || first.tensors().size() != to.tensors().size())
    return refuse("its features differ");
  for (size_t i = 0; i < first.tensors().size(); ++i) {
    const BatchTensor& a = first.tensors()[i];
    const BatchTensor& b = to.tensors()[i];
    std::vector<int64_t> expected(a.type.shape.begin(), a.type.shape.end());
    std::vector<int64_t> found(b.type.shape.begin(), b.type.shape.end());
    bool fits = a.name == b.name && a.type.dtype == b.type.dtype && a.batched == b.batched &&
                a.kind == b.kind && a.ragged_rank == b.ragged_rank && a.fixed() == b.fixed() &&
                expected.size() == found.size();
    if (fits && a.batched && !expected.empty() && expected[0] >= 0) {
      if (found[0] > expected[0]) {
        if (!first.world().is_alone() || !to.world().is_alone()) {
          return refuse(absl::StrCat(
              "of a batch of ", to.batch_rows(), " rows host ", to.world().host, " of ",
              to.world().hosts, " may have ", found[0], ", and a slot of its ring has room for ",
              expected[0], ", of batches of ", first.batch_rows(), " by ", first.world().hosts,
              " hosts (--fewest-hosts of the creation); create another "
              "pipeline from its cursor, on all hosts from the same one"));
        }
        return refuse(absl::StrCat("a batch_size larger than that of the beginning, ", expected[0],
                                   ", does not fit the ring, found ", found[0]));
      }
      found[0] = expected[0];
    }
    if (!fits || expected != found) {
      return refuse(absl::StrCat(
          "feature ", a.name, " was ", TypeToString(a.type), ", found ", b.name, " ",
          TypeToString(b.type),
          first.world() == to.world()
              ? ""
              : "; a ring has the rows of whole batches of one world: create another pipeline "
                "from its cursor, on all hosts from the same one"));
    }
  }
  return absl::OkStatus();
}

void KeepSeeds(v1::Stage from, v1::Stage* to) {
  v1::PipelineSpec old_spec, new_spec;
  *old_spec.add_stage() = std::move(from);
  *new_spec.add_stage() = *to;
  const std::vector<v1::Stage*> old_stages = AllStages(old_spec);
  const std::vector<v1::Stage*> new_stages = AllStages(new_spec);
  for (size_t i = 0; i < std::min(old_stages.size(), new_stages.size()); ++i) {
    const FieldDescriptor* const op = OpField(*new_stages[i]);
    if (op == nullptr || op != OpField(*old_stages[i])) continue;
    if (new_stages[i]->name().empty()) new_stages[i]->set_name(old_stages[i]->name());
    Message* const options = MutableOptionsOf(new_stages[i]);
    const FoundOption<Message> seed = FindOption(options, TraitsOf(op).seed);
    const auto old_seed = FindOption(*OptionsOf(*old_stages[i]), TraitsOf(op).seed);
    if (seed.options == nullptr || old_seed.options == nullptr) continue;
    const Reflection& reflection = *seed.options->GetReflection();
    if (reflection.HasField(*seed.options, seed.field)) continue;
    reflection.SetInt64(seed.options, seed.field,
                        reflection.GetInt64(*old_seed.options, seed.field));
  }
  *to = new_spec.stage(0);
}

absl::Status CheckPlanChange(const Plan& first, const Plan& from, const Plan& to) {
  const v1::PipelineSpec& old_spec = from.spec();
  const v1::PipelineSpec& new_spec = to.spec();
  if (old_spec.stage_size() != new_spec.stage_size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("stages cannot be added or left out while the pipeline runs: expected ",
                     old_spec.stage_size(), ", found ", new_spec.stage_size()));
  }
  const std::vector<StageKind> kinds = TopKinds(static_cast<const PlanImpl&>(from));
  std::string behind;
  if (HasEarlyBatches(from)) behind = "an op that takes whole batches";
  for (int i = old_spec.stage_size() - 1; i >= 0; --i) {
    absl::Status status = CheckStage(old_spec.stage(i), new_spec.stage(i), kinds[i], behind);
    if (!status.ok()) return status;
    const v1::Stage& stage = old_spec.stage(i);
    if (kinds[i] == StageKind::kOrder && TraitsOf(stage).keeps_elements)
      behind = absl::StrCat(OpField(stage)->name(), " (stage ", stage.name(), ")");
  }
  return CheckSameElement(first, to);
}

absl::Status ReplaceStages(const google::protobuf::RepeatedPtrField<v1::Stage>& changed,
                           v1::PipelineSpec* spec) {
  for (const v1::Stage& stage : changed) {
    const auto found =
        std::find_if(spec->mutable_stage()->begin(), spec->mutable_stage()->end(),
                     [&stage](const v1::Stage& one) { return one.name() == stage.name(); });
    if (found == spec->mutable_stage()->end()) {
      return absl::NotFoundError(absl::StrCat(
          "the history changes a stage that the spec has not: \"", stage.name(), "\""));
    }
    if (ChangesButItsInputs(*found, stage)) {
      TakeWhatMayChange(stage, &*found);
      continue;
    }
    v1::Stage taken = stage;
    KeepSeeds(*found, &taken);
    *found = std::move(taken);
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const v1::Stage& from, const v1::Stage& to) {
  if (!ChangesButItsInputs(from, to)) return absl::OkStatus();
  v1::Stage kept = to;
  KeepSeeds(from, &kept);
  if (DifferOnlyInWhatMayChange(from, kept)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("stage ", from.name(), ": ", OpField(from)->name(),
                   " decides the order and cannot be changed while the pipeline runs, but for ",
                   AllThatMayChange()));
}

google::protobuf::RepeatedPtrField<v1::Stage> ChangedStages(const v1::PipelineSpec& from,
                                                            const v1::PipelineSpec& to) {
  google::protobuf::RepeatedPtrField<v1::Stage> changed;
  for (int i = 0; i < std::min(from.stage_size(), to.stage_size()); ++i) {
    if (Equal(from.stage(i), to.stage(i))) continue;
    v1::Stage* stage = changed.Add();
    *stage = to.stage(i);
    if (!ChangesButItsInputs(*stage, *stage)) continue;
    Message* const options = MutableOptionsOf(stage);
    options->GetReflection()->ClearField(options, InputField(*options));
  }
  return changed;
}

}  // namespace penstock
