#include "absl/strings/str_cat.h"
#include "base/file_error.h"
#include "base/shown_url.h"
#include "server/engine/keep/keep_in_file.h"
#include "server/engine/plan/op_registry.h"

namespace penstock {
namespace {

const OpRegistration<v1::Save> kSave(
    "save", {.gives = Given::kOneEach, .folder = v1::Save::kPathFieldNumber},
    [](const v1::Save& options, PlanBuilder& plan) -> absl::Status {
      if (options.path().empty())
        return absl::InvalidArgumentError("path: expected that of a folder, found none");
      if (!options.compression().empty() && options.compression() != "GZIP") {
        return absl::InvalidArgumentError(absl::StrCat(
            "compression: expected \"\" or \"GZIP\", found \"", options.compression(), "\""));
      }
      if (options.sharded() && IsAddress(options.path())) {
        return absl::UnimplementedError(
            absl::StrCat("shards are saved on this machine alone: save without a shard_func, or "
                         "into a folder that is copied then (",
                         ShownUrl(options.path()), ")"));
      }
      if (absl::Status status = plan.EndBatches(); !status.ok()) return status;
      const Signature& elements = plan.signature();
      if (options.sharded() && elements.front().type != TensorType{DType::kInt64, {}}) {
        return absl::InvalidArgumentError(
            absl::StrCat("sharded: expected an int64 scalar as the first feature, found \"",
                         elements.front().name, "\" ", TypeToString(elements.front().type)));
      }
      return KeepInFile({.folder = options.path(),
                         .name = kSavedElementsName,
                         .unwritten = Unwritten::kFails,
                         .compressed = !options.compression().empty(),
                         .sharded = options.sharded()},
                        plan);
    });

}  // namespace
}  // namespace penstock
