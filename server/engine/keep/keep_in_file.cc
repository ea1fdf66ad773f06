#include "server/engine/keep/keep_in_file.h"

#include <memory>
#include <utility>

namespace penstock {

absl::Status BeginKeeping(PlanBuilder& plan) {
  if (plan.nested()) {
    return absl::InvalidArgumentError(
        "expected to stand outside of nested stages, which are for another element, file or window "
        "each time");
  }
  if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
  plan.EndSectionAsIs();
  return absl::OkStatus();
}

absl::Status KeepInFile(const KeepOptions& options, PlanBuilder& plan) {
  if (absl::Status status = BeginKeeping(plan); !status.ok()) return status;
  // A file without a name is read by plans that make the same cells.
  if (!options.name.empty()) plan.EndSectionAlone();
  absl::StatusOr<std::shared_ptr<const FileCache>> cache = FileCache::Create(
      options.folder, options.name, options.bytes_max, options.compressed, options.sharded, plan);
  if (!cache.ok()) return cache.status();
  plan.AddOrder(
      [cache = *std::move(cache), cells = plan.cells(), stage = plan.stage_index(),
       unwritten = options.unwritten](FrontContext& context, OrderInputs inputs) {
        return MakeKeptOrder(context, MakeFileKept(context, cache, *cells, stage, unwritten),
                             std::move(inputs[0]));
      },
      CursorClass::kReplayOrder);
  if (options.name.empty())
    plan.AddNotice("where its file has all elements, a cursor seeks in it, whatever is before it");
  return absl::OkStatus();
}

}  // namespace penstock
