#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"

namespace penstock {
namespace {

absl::Status PlanBatch(const v1::Batch& options, PlanBuilder& plan) {
  absl::StatusOr<BatchForm> form = ReadBatchOptions(options, plan);
  if (!form.ok()) return form.status();
  AddBatch(plan, options.batch_size(), *std::move(form));
  return absl::OkStatus();
}

const OpRegistration<v1::Batch> kBatch("batch",
                                       {.keeps_elements = false,
                                        .batch_size = v1::Batch::kBatchSizeFieldNumber,
                                        .may_change = {v1::Batch::kBatchSizeFieldNumber}},
                                       PlanBatch);

}  // namespace
}  // namespace penstock
