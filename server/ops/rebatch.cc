#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/batch_order.h"
#include "server/engine/op_registry.h"
#include "server/engine/unbatch_rows.h"

namespace penstock {
namespace {

const OpRegistration<v1::Rebatch> kRebatch(
    "rebatch", [](const v1::Rebatch& options, PlanBuilder& plan) -> absl::Status {
      if (options.batch_size().empty())
        return absl::InvalidArgumentError("batch_size: expected at least one, found none");
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
        sizes.push_back(static_cast<uint32_t>(size));
      }
      const bool equal =
          std::adjacent_find(sizes.begin(), sizes.end(), std::not_equal_to<>()) == sizes.end();
      if (equal) {
        AddBatch(plan, sizes.front(), std::move(form));
      } else {
        AddBatches(plan, std::move(sizes), std::move(form));
      }
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
