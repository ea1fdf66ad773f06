#include <utility>

#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"
#include "server/engine/tensor/padding_options.h"

namespace penstock {
namespace {

const OpRegistration<v1::PaddedBatch> kPaddedBatch(
    "padded_batch",
    {.keeps_elements = false,
     .batch_size = v1::PaddedBatch::kBatchSizeFieldNumber,
     .may_change = {v1::PaddedBatch::kBatchSizeFieldNumber}},
    [](const v1::PaddedBatch& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<BatchForm> form = ReadBatchOptions(options, plan);
      if (!form.ok()) return form.status();
      absl::Status status =
          ReadPadding(options.padded_shape(), options.padding_value(), plan.signature(), &*form);
      if (!status.ok()) return status;
      AddBatch(plan, options.batch_size(), *std::move(form));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
