#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file_error.h"
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
      // "a//b" is another object than "a/b".
      absl::string_view folder = options.path();
      while (IsAddress(options.path()) && absl::ConsumeSuffix(&folder, "/")) continue;
      return LoadSavedElements(
          absl::StrCat(folder, "/", kSavedElementsName, kElementFileSuffix),
          options.has_shard() ? std::optional<int64_t>(options.shard()) : std::nullopt, plan);
    });

}  // namespace
}  // namespace penstock
