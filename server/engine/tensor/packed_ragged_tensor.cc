#include "server/engine/tensor/packed_ragged_tensor.h"

#include <algorithm>

#include "base/in_pieces.h"

namespace penstock {

void PackedRaggedTensor::Reset(size_t blocks) {
  blocks_.resize(blocks);
  for (Block& block : blocks_) {
    block.first.reset();
    block.values.Clear();
    for (std::vector<int64_t>& lengths : block.lengths) lengths.clear();
  }
}

RowStatus PackedRaggedTensor::Put(size_t block_index, uint32_t first, uint32_t rows,
                                  const Column& column) {
  Block& block = blocks_[block_index];
  if (!block.first) block.first = first;
  for (uint32_t row = 0; row < rows; ++row) {
    if (!IsShown(first, row)) continue;
    const RaggedRow ragged = ReadRaggedRow(layout_.row, {column.row(row), column.row_size(row)});
    size_t axis = 0;
    if (tensor_.batched)
      block.lengths[axis++].push_back(static_cast<int64_t>(ragged.splits[0].size()) - 1);
    for (const absl::Span<const int64_t> splits : ragged.splits) {
      std::vector<int64_t>& lengths = block.lengths[axis++];
      InPieces(splits.size() - 1, [&](size_t begin, size_t some) {
        for (size_t i = begin; i < begin + some; ++i) lengths.push_back(splits[i + 1] - splits[i]);
      });
    }
    block.values.Append(ragged.values);
  }
  return {};
}

RowStatus PackedRaggedTensor::Measure(uint32_t, uint32_t shape_rows, PartBytes* bytes) {
  bytes->fill(0);
  shape_rows_ = shape_rows;
  uint64_t count = 0, value_bytes = 0;
  std::array<uint64_t, kParts> lengths = {};
  for (const Block& block : blocks_) {
    count += block.values.count();
    value_bytes += block.values.bytes();
    for (size_t axis = 0; axis < kParts; ++axis) lengths[axis] += block.lengths[axis].size();
  }
  if (tensor_.batched) lengths[0] = shape_rows;
  uint64_t* part = bytes->data();
  if (is_string()) *part++ = (count + 1) * sizeof(int64_t);
  *part++ = value_bytes;
  for (int axis = 0; axis < tensor_.ragged_rank; ++axis)
    *part++ = (lengths[axis] + 1) * sizeof(int64_t);
  return {};
}

void PackedRaggedTensor::Write(const std::array<uint8_t*, kParts>& parts) const {
  WriteValues(blocks_, is_string(), parts.data());
  uint8_t* const* part = parts.data() + (is_string() ? 2 : 1);
  for (int axis = 0; axis < tensor_.ragged_rank; ++axis) {
    auto* splits = reinterpret_cast<int64_t*>(part[axis]);
    int64_t end = 0;
    uint64_t rows = 0;
    *splits++ = 0;
    for (const Block& block : blocks_) {
      InPieces(block.lengths[axis].size(), [&](size_t first, size_t some) {
        for (size_t i = first; i < first + some; ++i) *splits++ = end += block.lengths[axis][i];
      });
      rows += block.lengths[axis].size();
    }
    // Rows that are no elements are empty.
    if (axis == 0 && tensor_.batched) std::fill_n(splits, shape_rows_ - rows, end);
  }
}

}  // namespace penstock
