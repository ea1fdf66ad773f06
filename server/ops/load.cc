#include "absl/strings/str_cat.h"
#include "server/engine/keep/saved_elements.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

const OpRegistration<v1::Load> kLoad(
    "load", {.place = OpPlace::kSource, .folder = v1::Load::kPathFieldNumber},
    [](const v1::Load& options, PlanBuilder& plan) -> absl::Status {
      if (options.path().empty())
        return absl::InvalidArgumentError("path: expected that of a folder, found none");
      if (plan.element_files()) {
        return absl::InvalidArgumentError(
            "expected to stand outside of nested stages, which are for another file each time");
      }
      return LoadSavedElements(
          absl::StrCat(options.path(), "/", kSavedElementsName, kElementFileSuffix),
          options.has_shard() ? std::optional<int64_t>(options.shard()) : std::nullopt, plan);
    });

}  // namespace
}  // namespace penstock
