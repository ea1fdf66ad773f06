#include "server/engine/keep_in_file.h"
#include "server/engine/op_registry.h"

namespace penstock {
namespace {

const OpRegistration<v1::Save> kSave(
    "save", [](const v1::Save& options, PlanBuilder& plan) -> absl::Status {
      if (options.path().empty())
        return absl::InvalidArgumentError("path: expected that of a folder, found none");
      return KeepInFile(
          {.folder = options.path(), .name = kSavedElementsName, .unwritten = Unwritten::kFails},
          plan);
    });

}  // namespace
}  // namespace penstock
