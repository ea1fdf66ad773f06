// Numbers that stand in the references themselves (`offset`): the feature `value`, int64. What
// range and enumerate count.
#pragma once

#include "server/engine/read/column_loader.h"

namespace penstock {

class CounterLoader final : public ColumnLoader {
 public:
  const Signature& output() const override { return output_; }
  RowStatus Load(RowReferences rows, FileTable&, absl::Span<Column> out,
                 Arena& arena) const override {
    Column& column = out[0];
    column.row_bytes = sizeof(int64_t);
    if (column.data == nullptr) column.data = arena.Allocate(rows.rows * sizeof(int64_t));
    auto* values = reinterpret_cast<int64_t*>(column.data);
    for (uint32_t row = 0; row < rows.rows; ++row)
      values[row] = static_cast<int64_t>(rows[row].offset);
    return {};
  }

 private:
  const Signature output_ = {{"value", {DType::kInt64, {}}}};
};

}  // namespace penstock
