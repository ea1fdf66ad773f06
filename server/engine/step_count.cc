#include "server/engine/step_count.h"

#include "absl/strings/str_cat.h"
#include "server/engine/front.h"
#include "server/engine/plan_impl.h"

namespace penstock {

StepCount CountSteps(const Plan& plan) {
  const auto& built = static_cast<const PlanImpl&>(plan);
  FileTable files(built.files(), built.manifest(), IndexBuilding::kNever, &built.indices());
  RecordStore store;
  ReadQueue reads;
  SegmentQueue segments;
  DamageLog damage;
  const std::atomic<bool> cancelled{false};
  Front front(built, files, store, reads, segments, damage, cancelled);
  const std::optional<uint64_t> count = front.Count();
  StepCount result;
  if (count == OrderOp::kEndless || plan.endless()) {
    result.why_not = "the stream has no end (`repeat` without count)";
  } else if (count) {
    result.steps = count;
  } else if (const std::string missing = files.MissingIndex(); !missing.empty()) {
    result.why_not = absl::StrCat(
        "the records have not been counted: `penstock index` of the pipeline's files "
        "does, before it is created; there is no index of ",
        missing.substr(missing.rfind('/') + 1));
  } else {
    result.why_not =
        "only reading tells: its files are compressed, text or of fixed-length records, or the "
        "data decides how many elements there are";
  }
  return result;
}

}  // namespace penstock
