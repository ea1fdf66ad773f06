#include "server/engine/keep/keep_in_file.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

const OpRegistration<v1::Snapshot> kSnapshot(
    "snapshot", {.gives = Given::kOneEach, .folder = v1::Snapshot::kPathFieldNumber},
    [](const v1::Snapshot& options, PlanBuilder& plan) -> absl::Status {
      if (options.path().empty())
        return absl::InvalidArgumentError("path: expected that of a folder, found none");
      return KeepInFile({.folder = options.path()}, plan);
    });

}  // namespace
}  // namespace penstock
