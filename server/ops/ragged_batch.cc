#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"

namespace penstock {
namespace {

const OpRegistration<v1::RaggedBatch> kRaggedBatch(
    "ragged_batch", {.keeps_elements = false, .batch_size = v1::RaggedBatch::kBatchSizeFieldNumber},
    [](const v1::RaggedBatch& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<BatchForm> form = ReadBatchOptions(options, plan);
      if (!form.ok()) return form.status();
      form->kind = BatchForm::Kind::kRagged;
      form->narrow_splits = options.int32_row_splits();
      AddBatch(plan, options.batch_size(), *std::move(form));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
