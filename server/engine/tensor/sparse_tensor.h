// A sparse tensor of one step: the values of all rows, each with its place. Rows are dense ones,
// all of whose values are taken, or packed ones, which have places of their own
// (base/packed_row.h).
//
// Threads:  as server/engine/tensor/joined_tensor.h says.
// Owns:     a copy of every value and index.
// Cost:     two copies of the values, one of the indices.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/tensor/joined_tensor.h"
#include "server/engine/tensor/row_values.h"

namespace penstock {

class SparseTensor final : public JoinedTensor {
 public:
  // Both must outlive it.
  SparseTensor(const BatchTensor& tensor, const RowLayout& layout)
      : tensor_(tensor), layout_(layout) {}

  size_t num_parts() const override { return is_string() ? 4 : 3; }
  void Reset(size_t blocks) override;
  // InvalidArgument for a row without room in the layout's shape.
  RowStatus Put(size_t block, uint32_t first, uint32_t rows, const Column& column) override;
  void Order(size_t count) override { OrderBlocks(count, &blocks_); }
  RowStatus Measure(uint32_t rows, uint32_t shape_rows, PartBytes* bytes) override;
  void Write(const std::array<uint8_t*, kParts>& parts) const override;

 private:
  // The rows of one task.
  struct Block {
    std::optional<uint32_t> first;  // of its rows, in the step
    RowValues values;
    std::vector<uint64_t> counts;      // of each row's values
    std::vector<int64_t> indices;      // of packed rows
    std::vector<int64_t> dims;         // the shape of each row, as a dense one
    std::vector<int64_t> hidden_dims;  // the same of rows that are not shown
  };

  bool is_string() const { return layout_.row.dtype == DType::kString; }
  size_t axes() const { return layout_.row.shape.size(); }
  int64_t* WriteIndices(const Block& block, int64_t first_row, int64_t* to) const;

  const BatchTensor& tensor_;
  const RowLayout& layout_;
  std::vector<Block> blocks_;

  // Of the batch that was measured.
  uint32_t shape_rows_ = 0;
  Shape shape_;  // of a dense row
};

}  // namespace penstock
