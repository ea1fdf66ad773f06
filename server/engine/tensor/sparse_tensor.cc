#include "server/engine/tensor/sparse_tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/in_pieces.h"

namespace penstock {

void SparseTensor::Reset(size_t blocks) {
  blocks_.resize(blocks);
  for (Block& block : blocks_) {
    block.first.reset();
    block.values.Clear();
    block.counts.clear();
    block.indices.clear();
    block.dims.clear();
    block.hidden_dims.clear();
  }
}

RowStatus SparseTensor::Put(size_t block_index, uint32_t first, uint32_t rows,
                            const Column& column) {
  Block& block = blocks_[block_index];
  if (!block.first) block.first = first;
  for (uint32_t row = 0; row < rows; ++row) {
    const RowBytes bytes{column.row(row), column.row_size(row)};
    if (layout_.row.packed()) {
      const SparseRow sparse = ReadSparseRow(layout_.row, bytes);
      if (!IsShown(first, row)) {
        block.hidden_dims.insert(block.hidden_dims.end(), sparse.sizes.begin(), sparse.sizes.end());
        continue;
      }
      block.counts.push_back(sparse.values.count);
      block.dims.insert(block.dims.end(), sparse.sizes.begin(), sparse.sizes.end());
      block.indices.insert(block.indices.end(), sparse.indices.begin(), sparse.indices.end());
      block.values.Append(sparse.values);
      continue;
    }
    // A span, not a copy: most rows are lists.
    const absl::Span<const int64_t> dims =
        column.dims != nullptr ? absl::MakeConstSpan(column.dims + row * axes(), axes())
                               : absl::MakeConstSpan(layout_.row.shape);
    uint64_t count = 1;
    for (size_t axis = 0; axis < dims.size(); ++axis) {
      if (layout_.shape[axis] >= 0 && dims[axis] > layout_.shape[axis]) {
        return {absl::DataLossError(absl::StrCat("feature \"", tensor_.name,
                                                 "\": expected a shape within ",
                                                 ShapeToString(layout_.shape), ", found ",
                                                 ShapeToString(Shape(dims.begin(), dims.end())))),
                static_cast<int>(row)};
      }
      count *= static_cast<uint64_t>(dims[axis]);  // of values that lie in memory
    }
    if (!IsShown(first, row)) {
      block.hidden_dims.insert(block.hidden_dims.end(), dims.begin(), dims.end());
      continue;
    }
    block.counts.push_back(count);
    block.dims.insert(block.dims.end(), dims.begin(), dims.end());
    block.values.Append(ReadDenseRow(layout_.row.dtype, count, bytes));
  }
  return {};
}

RowStatus SparseTensor::Measure(uint32_t, uint32_t shape_rows, PartBytes* bytes) {
  bytes->fill(0);
  shape_rows_ = shape_rows;
  // A dense tensor that nobody makes may have any size; what is known stays, what is not is the
  // largest.
  shape_ = layout_.shape;
  for (size_t axis = 0; axis < axes(); ++axis) {
    if (layout_.shape[axis] >= 0) continue;
    shape_[axis] = 0;
    for (const Block& block : blocks_) {
      for (const std::vector<int64_t>* const dims : {&block.dims, &block.hidden_dims}) {
        for (size_t i = axis; i < dims->size(); i += axes())
          shape_[axis] = std::max(shape_[axis], (*dims)[i]);
      }
    }
  }
  uint64_t count = 0, value_bytes = 0;
  for (const Block& block : blocks_) {
    count += block.values.count();
    value_bytes += block.values.bytes();
  }
  uint64_t* part = bytes->data();
  if (is_string()) *part++ = (count + 1) * sizeof(int64_t);
  *part++ = value_bytes;
  const size_t ndim = tensor_.type.shape.size();
  *part++ = count * ndim * sizeof(int64_t);
  *part = ndim * sizeof(int64_t);
  return {};
}

int64_t* SparseTensor::WriteIndices(const Block& block, int64_t first_row, int64_t* to) const {
  if (axes() == 1 && tensor_.batched && !layout_.row.packed()) {
    for (const uint64_t count : block.counts) {
      InPieces(count, [&](size_t first, size_t some) {
        for (uint64_t i = first; i < first + some; ++i, to += 2) {
          to[0] = first_row;
          to[1] = static_cast<int64_t>(i);
        }
      });
      ++first_row;
    }
    return to;
  }
  const int64_t* packed = block.indices.data();
  StopLook look;
  for (size_t row = 0; row < block.counts.size(); ++row) {
    Shape index(axes(), 0);
    for (uint64_t i = 0; i < block.counts[row]; ++i) {
      look.Did(axes());
      if (tensor_.batched) *to++ = first_row + static_cast<int64_t>(row);
      if (layout_.row.packed()) {
        to = std::copy_n(packed, axes(), to);
        packed += axes();
        continue;
      }
      to = std::copy(index.begin(), index.end(), to);
      const int64_t* dims = block.dims.data() + row * axes();
      for (size_t axis = axes(); axis-- > 0;) {
        if (++index[axis] < dims[axis]) break;
        index[axis] = 0;
      }
    }
  }
  return to;
}

void SparseTensor::Write(const std::array<uint8_t*, kParts>& parts) const {
  WriteValues(blocks_, is_string(), parts.data());
  uint8_t* const* part = parts.data() + (is_string() ? 2 : 1);
  auto* indices = reinterpret_cast<int64_t*>(*part++);
  int64_t row = 0;
  for (const Block& block : blocks_) {
    indices = WriteIndices(block, row, indices);
    row += static_cast<int64_t>(block.counts.size());
  }
  auto* shape = reinterpret_cast<int64_t*>(*part);
  if (tensor_.batched) *shape++ = shape_rows_;
  std::copy(shape_.begin(), shape_.end(), shape);
}

}  // namespace penstock
