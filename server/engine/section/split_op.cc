#include "server/engine/section/split_op.h"

#include <algorithm>

namespace penstock {

Column SelectRows(const TensorType& type, const Column& column, absl::Span<const uint32_t> rows,
                  Arena& arena) {
  Column selected;
  auto* values = arena.AllocateArray<RowBytes>(rows.size());
  for (size_t i = 0; i < rows.size(); ++i)
    values[i] = {column.row(rows[i]), column.row_size(rows[i])};
  selected.rows = values;
  if (column.dims != nullptr) {
    const size_t ndim = type.shape.size();
    auto* dims = arena.AllocateArray<int64_t>(rows.size() * ndim);
    for (size_t i = 0; i < rows.size(); ++i)
      std::copy_n(column.dims + rows[i] * ndim, ndim, dims + i * ndim);
    selected.dims = dims;
  }
  return selected;
}

}  // namespace penstock
