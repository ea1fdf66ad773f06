// A ragged tensor of one step whose rows are ragged themselves (base/packed_row.h).
//
// Threads:  as server/engine/tensor/joined_tensor.h says.
// Owns:     a copy of every value and row length.
// Cost:     two copies of the values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "server/engine/tensor/joined_tensor.h"
#include "server/engine/tensor/row_values.h"

namespace penstock {

class PackedRaggedTensor final : public JoinedTensor {
 public:
  // Both must outlive it.
  PackedRaggedTensor(const BatchTensor& tensor, const RowLayout& layout)
      : tensor_(tensor), layout_(layout) {}

  size_t num_parts() const override { return (is_string() ? 2 : 1) + tensor_.ragged_rank; }
  void Reset(size_t blocks) override;
  RowStatus Put(size_t block, uint32_t first, uint32_t rows, const Column& column) override;
  void Order(size_t count) override { OrderBlocks(count, &blocks_); }
  RowStatus Measure(uint32_t rows, uint32_t shape_rows, PartBytes* bytes) override;
  void Write(const std::array<uint8_t*, kParts>& parts) const override;

 private:
  // The rows of one task. Lengths of the rows of each axis of the tensor that is ragged behind it,
  // the batch's own rows first.
  struct Block {
    std::optional<uint32_t> first;  // of its rows, in the step
    RowValues values;
    std::array<std::vector<int64_t>, kParts> lengths;
  };

  bool is_string() const { return layout_.row.dtype == DType::kString; }

  const BatchTensor& tensor_;
  const RowLayout& layout_;
  std::vector<Block> blocks_;
  uint32_t shape_rows_ = 0;  // of the batch that was measured
};

}  // namespace penstock
