#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"

namespace penstock {
namespace {

const OpRegistration<v1::Batch> kBatch(
    "batch", [](const v1::Batch& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<BatchForm> form = ReadBatchOptions(options, plan);
      if (!form.ok()) return form.status();
      AddBatch(plan, options.batch_size(), *std::move(form));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
