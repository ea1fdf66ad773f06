#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"
#include "server/engine/stage/unbatch_rows.h"

namespace penstock {
namespace {

// The rows that every element has, where that is known beforehand.
std::optional<int64_t> RowsOfEach(const PlanBuilder& plan) {
  // One that is left out may have been part of a batch.
  if (plan.ignored()) return std::nullopt;
  if (plan.batched()) return plan.full_batch_rows();
  for (const Feature& feature : plan.signature()) {
    const Shape& shape = feature.type.shape;
    if (!shape.empty() && shape.front() != kUnknownSize) return shape.front();
  }
  return std::nullopt;
}

const OpRegistration<v1::Rebatch> kRebatch(
    "rebatch", {}, [](const v1::Rebatch& options, PlanBuilder& plan) -> absl::Status {
      if (options.batch_size().empty())
        return absl::InvalidArgumentError("batch_size: expected at least one, found none");
      const std::optional<int64_t> each = RowsOfEach(plan);
      const BatchForm before = plan.batched() ? plan.batch_form() : BatchForm{};
      if (absl::Status status = AddUnbatch(plan); !status.ok()) return status;
      std::vector<uint32_t> sizes;
      BatchForm form;
      for (const int64_t size : options.batch_size()) {
        LastBatchOptions last;
        last.batch_size = size;
        last.drop_remainder = options.drop_remainder();
        absl::StatusOr<BatchForm> checked = CheckBatchOptions(last, plan);
        if (!checked.ok()) return checked.status();
        form = *std::move(checked);
        // Rows that are of many lengths stay so.
        if (before.kind == BatchForm::Kind::kRagged) {
          form.kind = before.kind;
          form.narrow_splits = before.narrow_splits;
        }
        sizes.push_back(static_cast<uint32_t>(size));
      }
      const bool equal =
          std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
      if (equal) {
        // Nothing is ever left over.
        if (each && *each % sizes.front() == 0) form.remainder = Remainder::kDrop;
        AddBatch(plan, sizes.front(), std::move(form));
      } else {
        AddBatches(plan, std::move(sizes), std::move(form));
      }
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
