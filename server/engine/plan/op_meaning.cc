#include "server/engine/plan/op_meaning.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/spec/stage_message.h"
#include "server/engine/spec/stages.h"

namespace penstock {
namespace {

uint32_t NumberOf(const v1::StageMeaning& stage) {
  return stage.number() == 0 ? 1 : stage.number();
}

bool IsWork(uint32_t place) { return place % 2 == 1; }

absl::Status Differs(const v1::StageMeaning& stage, uint32_t kept) {
  const std::string change = stage.change().empty() ? "" : absl::StrCat(" (", stage.change(), ")");
  return absl::FailedPreconditionError(absl::StrCat(
      "stage ", stage.name(), ": the op ", stage.op(), " means something else in this release",
      change, ": expected meaning ", NumberOf(stage), ", found ", kept));
}

}  // namespace

v1::Meanings MeaningsOf(const PlanImpl& plan) {
  v1::Meanings meanings;
  v1::PipelineSpec spec = plan.spec();
  const std::vector<v1::Stage*> stages = AllStages(spec);
  uint32_t num_orders = 0, num_works = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const StageKind kind = plan.stage_kinds()[i];
    if (kind == StageKind::kHint) continue;
    v1::StageMeaning& stage = *meanings.add_stage();
    stage.set_place(kind == StageKind::kOrder ? 2 * num_orders++ : 2 * num_works++ + 1);
    stage.set_number(static_cast<uint32_t>(plan.meanings()[i].number));
    stage.set_name(plan.stage_names()[i]);
    stage.set_op(OpField(*stages[i])->name());
    stage.set_change(plan.meanings()[i].change);
  }
  return meanings;
}

v1::Meanings InShort(const v1::Meanings& meanings) {
  v1::Meanings result;
  for (const v1::StageMeaning& stage : meanings.stage()) {
    if (NumberOf(stage) == 1) continue;
    v1::StageMeaning& kept = *result.add_stage();
    kept.set_place(stage.place());
    kept.set_number(stage.number());
  }
  return result;
}

absl::Status CheckMeanings(const v1::Meanings& kept, const v1::Meanings& expected,
                           MeaningsOfWork of_work) {
  std::map<uint32_t, uint32_t> numbers;
  for (const v1::StageMeaning& stage : kept.stage()) numbers[stage.place()] = NumberOf(stage);
  for (const v1::StageMeaning& stage : expected.stage()) {
    const auto found = numbers.find(stage.place());
    const uint32_t number = found == numbers.end() ? 1 : found->second;
    if (found != numbers.end()) numbers.erase(found);
    if (of_work == MeaningsOfWork::kAny && IsWork(stage.place())) continue;
    if (number != NumberOf(stage)) return Differs(stage, number);
  }
  for (const auto& [place, number] : numbers) {
    if (number == 1 || (of_work == MeaningsOfWork::kAny && IsWork(place))) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("a stage that this plan has not means something else there: found meaning ",
                     number, " of ", IsWork(place) ? "work" : "order", " op ", place / 2));
  }
  return absl::OkStatus();
}

}  // namespace penstock
