#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan/op_registry.h"
#include "server/engine/stage/batch_order.h"

namespace penstock {
namespace {

const OpRegistration<v1::SparseBatch> kSparseBatch(
    "sparse_batch", {.keeps_elements = false, .batch_size = v1::SparseBatch::kBatchSizeFieldNumber},
    [](const v1::SparseBatch& options, PlanBuilder& plan) -> absl::Status {
      absl::StatusOr<BatchForm> form =
          CheckBatchOptions({options.batch_size(), std::nullopt, std::nullopt}, plan);
      if (!form.ok()) return form.status();
      const Signature& input = plan.signature();
      if (input.size() != 1 || input[0].type.form != RowForm::kPlain ||
          input[0].type.shape.empty()) {
        return absl::InvalidArgumentError(absl::StrCat(
            "expected one dense tensor with an axis or more, found ", input.size(),
            " feature(s), the first \"", input[0].name, "\" ", TypeToString(input[0].type)));
      }
      const Shape& shape = input[0].type.shape;
      Shape room(options.row_shape().begin(), options.row_shape().end());
      bool fits = room.size() == shape.size();
      for (size_t axis = 0; fits && axis < room.size(); ++axis) {
        fits = room[axis] >= -1 && (room[axis] < 0 || shape[axis] <= room[axis]);
        if (room[axis] == kUnknownSize) room[axis] = shape[axis];
      }
      if (!fits) {
        return absl::InvalidArgumentError(absl::StrCat(
            "row_shape: expected ", shape.size(), " sizes, each -1 or at least that of ",
            TypeToString(input[0].type), ", found ", ShapeToString(room)));
      }
      form->kind = BatchForm::Kind::kSparse;
      form->shapes = {std::move(room)};
      AddBatch(plan, static_cast<uint32_t>(options.batch_size()), *std::move(form));
      return absl::OkStatus();
    });

}  // namespace
}  // namespace penstock
