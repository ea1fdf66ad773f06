#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"

namespace penstock {
namespace {

absl::Status PlanJoin(const v1::Join& options, PlanBuilder& plan) {
  absl::StatusOr<BatchForm> form =
      CheckBatchOptions({options.rows(), std::nullopt, std::nullopt}, plan);
  if (!form.ok()) return form.status();
  AddBatch(plan, options.rows(), *std::move(form));
  return absl::OkStatus();
}

const OpRegistration<v1::Join> kJoin("join",
                                     {.keeps_elements = false,
                                      .batch_size = v1::Join::kRowsFieldNumber,
                                      .may_change = {v1::Join::kRowsFieldNumber}},
                                     PlanJoin);

}  // namespace
}  // namespace penstock
