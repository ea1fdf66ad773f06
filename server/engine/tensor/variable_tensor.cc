#include "server/engine/tensor/variable_tensor.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "base/in_pieces.h"
#include "base/row_shape.h"
#include "server/engine/tensor/pad_rows.h"

namespace penstock {
namespace {

uint64_t Multiply(uint64_t a, uint64_t b) {
  uint64_t product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return VariableTensor::kTooMany;
  return std::min(product, VariableTensor::kTooMany);
}

// Of a string beside its bytes, as StopLook counts it.
constexpr uint64_t kStringWork = 16;

// The sizes of strings as where each of them ends, behind `end`; the last end.
int64_t WriteEnds(absl::Span<const uint32_t> sizes, int64_t end, int64_t* to) {
  InPieces(sizes.size(), [&](size_t first, size_t some) {
    for (const uint32_t size : sizes.subspan(first, some)) *to++ = end += size;
  });
  return end;
}

// The product of `count` sizes, none of them unknown.
uint64_t Elements(const int64_t* sizes, size_t count) {
  uint64_t product = 1;
  for (size_t i = 0; i < count; ++i) product = Multiply(product, static_cast<uint64_t>(sizes[i]));
  return product;
}

}  // namespace

size_t VariableTensor::num_parts() const {
  if (is_ragged()) return (is_string() ? 2 : 1) + tensor_.ragged_rank;
  return (is_string() ? 2 : 1) + (HasUnknownAxes(tensor_.type.shape) ? 1 : 0);
}

void VariableTensor::Reset(size_t blocks) {
  in_slot_ = {};
  blocks_.resize(blocks);
  for (Block& block : blocks_) {
    block.first.reset();
    block.rows = 0;
    block.bytes.clear();
    block.sizes.clear();
    block.dims.clear();
    block.places.clear();
    block.place_bytes = 0;
    block.rooms.clear();
  }
}

RowStatus VariableTensor::PutStaying(size_t block_index, uint32_t first, uint32_t rows,
                                     const Column& column) {
  Block& block = blocks_[block_index];
  // A block's rows are kept in one way.
  if (block.rows > 0 && block.places.empty()) return Put(block_index, first, rows, column);
  if (!block.first) block.first = first;
  if (StayingRoom* const room = StayingRoom::OfThisThread()) {
    if (block.rooms.empty() || block.rooms.back().get() != room)
      block.rooms.push_back(room->shared_from_this());
  }
  for (uint32_t row = 0; row < rows; ++row) {
    if (!IsShown(first, row)) continue;
    const RowBytes& place = block.places.emplace_back(column.rows[row]);
    block.sizes.push_back(static_cast<uint32_t>(place.size));
    block.place_bytes += place.size;
  }
  block.rows += rows;
  return {};
}

void VariableTensor::PutInSlot(size_t block_index, uint32_t first, const Column& column) {
  Block& block = blocks_[block_index];
  block.first = first;
  block.rows = 1;
  const int64_t* const dims = column.dims != nullptr ? column.dims : layout_.row.shape.data();
  block.dims.assign(dims, dims + axes());
  in_slot_ = column.rows[0];
}

RowStatus VariableTensor::Put(size_t block_index, uint32_t first, uint32_t rows,
                              const Column& column) {
  Block& block = blocks_[block_index];
  if (!block.first) block.first = first;
  for (const RowBytes& place : block.places)
    AppendInPieces(&block.bytes, {reinterpret_cast<const char*>(place.data), place.size});
  block.places.clear();
  block.place_bytes = 0;
  block.rooms.clear();
  for (uint32_t row = 0; row < rows; ++row) {
    const auto* bytes = reinterpret_cast<const char*>(column.row(row));
    size_t size = column.row_size(row);
    if (axes() > 0) {
      // A span, not a copy: most rows are lists.
      const absl::Span<const int64_t> shape =
          column.dims != nullptr ? absl::MakeConstSpan(column.dims + row * axes(), axes())
                                 : absl::MakeConstSpan(layout_.row.shape);
      if (layout_.pads) {
        absl::Status status =
            CheckFits(tensor_.name, Shape(shape.begin(), shape.end()), layout_.shape);
        if (!status.ok()) return {std::move(status), static_cast<int>(row)};
      }
      block.dims.insert(block.dims.end(), shape.begin(), shape.end());
      if (!IsShown(first, row)) {
        ++block.rows;
        continue;
      }
      if (is_string()) {
        const size_t count = Elements(shape.data(), shape.size());
        const size_t before = block.sizes.size();
        block.sizes.resize(before + count);
        if (count > 0) CopyInPieces(&block.sizes[before], bytes, count * sizeof(uint32_t));
        bytes += count * sizeof(uint32_t);
        size -= count * sizeof(uint32_t);
      }
    } else if (!IsShown(first, row)) {
      ++block.rows;
      continue;
    } else if (is_string()) {
      block.sizes.push_back(static_cast<uint32_t>(size));
    }
    AppendInPieces(&block.bytes, {bytes, size});
    ++block.rows;
  }
  return {};
}

template <typename Visit>
void VariableTensor::VisitRows(const Visit& visit) const {
  for (const Block& block : blocks_) {
    Row row{block.bytes.data(), block.sizes.data(), block.dims.data(), 0};
    for (uint32_t i = 0; i < block.rows; ++i) {
      if (!IsShown(*block.first, i)) {
        row.dims += axes();
        continue;
      }
      row.elements = Elements(row.dims, axes());
      size_t bytes = row.elements * DTypeSize(layout_.row.dtype);
      if (is_string()) {
        InPieces(row.elements, [&](size_t first, size_t some) {
          for (size_t element = first; element < first + some; ++element)
            bytes += row.sizes[element];
        });
      }
      visit(row, bytes);
      row.bytes += bytes;
      row.dims += axes();
      if (is_string()) row.sizes += row.elements;
    }
  }
}

// The shape of the batch's rows: the one that all have, or the largest of each axis.
RowStatus VariableTensor::FindShape() {
  shape_.clear();
  if (axes() == 0) return {};
  bool is_first = true;
  int row = 0;
  for (const Block& block : blocks_) {
    for (uint32_t i = 0; i < block.rows; ++i, ++row) {
      const int64_t* dims = block.dims.data() + i * axes();
      if (is_first) {
        shape_.assign(dims, dims + axes());
        is_first = false;
      } else if (layout_.pads) {
        for (size_t axis = 0; axis < axes(); ++axis)
          shape_[axis] = std::max(shape_[axis], dims[axis]);
      } else if (!std::equal(shape_.begin(), shape_.end(), dims)) {
        return {absl::InvalidArgumentError(
                    absl::StrCat("feature \"", tensor_.name,
                                 "\": the rows of a batch have different shapes: the first has ",
                                 ShapeToString(shape_), ", row ", row, " has ",
                                 ShapeToString(Shape(dims, dims + axes())),
                                 "; padded_batch and ragged_batch take such rows")),
                row};
      }
    }
  }
  if (layout_.pads) {
    for (size_t axis = 0; axis < axes(); ++axis) {
      if (layout_.shape[axis] != kUnknownSize) shape_[axis] = layout_.shape[axis];
    }
  }
  return {};
}

RowStatus VariableTensor::Measure(uint32_t rows, uint32_t shape_rows, PartBytes* bytes) {
  bytes->fill(0);
  shape_rows_ = shape_rows;
  uint64_t* part = bytes->data();
  uint64_t value_bytes = 0, elements = 0;
  for (const Block& block : blocks_) value_bytes += block.bytes.size() + block.place_bytes;
  // Rows behind each ragged axis.
  uint64_t inner[kParts] = {};
  if (is_ragged()) {
    VisitRows([&](const Row& row, size_t) {
      elements += row.elements;
      for (int axis = 0; axis < tensor_.ragged_rank; ++axis)
        inner[axis] += Elements(row.dims, axis + 1);
    });
  } else {
    if (RowStatus status = FindShape(); !status.ok()) return status;
    elements = Multiply(shape_rows, Elements(shape_.data(), shape_.size()));
  }
  if (is_string()) {
    size_t found = 0;
    for (const Block& block : blocks_) found += block.sizes.size();
    if (layout_.pads && elements < kTooMany)
      value_bytes += Multiply(elements - found, layout_.padding.size());
    *part++ = Multiply(elements + 1, sizeof(int64_t));
    *part++ = std::min(value_bytes, kTooMany);
  } else {
    *part++ = Multiply(elements, DTypeSize(layout_.row.dtype));
  }
  if (is_ragged()) {
    *part++ = (uint64_t{shape_rows} + 1) * sizeof(int64_t);
    for (int axis = 0; axis + 1 < tensor_.ragged_rank; ++axis)
      *part++ = Multiply(inner[axis] + 1, sizeof(int64_t));
  } else if (HasUnknownAxes(tensor_.type.shape)) {
    *part++ = tensor_.type.shape.size() * sizeof(int64_t);
  }
  return {};
}

void VariableTensor::Write(const std::array<uint8_t*, kParts>& parts) const {
  uint8_t* const* part = parts.data();
  if (is_string()) {
    WriteStrings(part[0], part[1]);
    part += 2;
  } else {
    WriteNumbers(*part++);
  }
  if (is_ragged()) {
    WriteSplits(part);
  } else if (HasUnknownAxes(tensor_.type.shape)) {
    auto* sizes = reinterpret_cast<int64_t*>(*part);
    if (tensor_.batched) *sizes++ = shape_rows_;
    std::copy(shape_.begin(), shape_.end(), sizes);
  }
}

void VariableTensor::WriteNumbers(uint8_t* values) const {
  if (in_slot_.data != nullptr) return;
  const size_t element = DTypeSize(layout_.row.dtype);
  const size_t row_elements = Elements(shape_.data(), shape_.size());
  if (layout_.pads) {
    FillWith(layout_.padding, shape_rows_ * row_elements * element, values);
    VisitRows([&](const Row& row, size_t) {
      VisitRuns(Shape(row.dims, row.dims + axes()), shape_,
                [&](size_t from, size_t to, size_t count) {
                  CopyInPieces(values + to * element, row.bytes + from * element, count * element);
                });
      values += row_elements * element;
    });
    return;
  }
  size_t done = 0;
  for (const Block& block : blocks_) {
    CopyInPieces(values + done, block.bytes.data(), block.bytes.size());
    done += block.bytes.size();
  }
  if (!is_ragged()) ClearInPieces(values + done, shape_rows_ * row_elements * element - done);
}

void VariableTensor::WriteStrings(uint8_t* offset_bytes, uint8_t* values) const {
  auto* offsets = reinterpret_cast<int64_t*>(offset_bytes);
  int64_t offset = 0;
  *offsets++ = 0;
  uint32_t rows = 0;
  const size_t row_elements = Elements(shape_.data(), shape_.size());
  if (!layout_.pads) {
    for (Block& block : blocks_) {
      CopyInPieces(values + offset, block.bytes.data(), block.bytes.size());
      uint8_t* to = values + offset;
      for (const RowBytes& place : block.places) {
        CopyInPieces(to, place.data, place.size);
        to += place.size;
      }
      block.rooms.clear();
      offset = WriteEnds(block.sizes, offset, offsets);
      offsets += block.sizes.size();
      for (uint32_t i = 0; i < block.rows; ++i) rows += IsShown(*block.first, i) ? 1 : 0;
    }
    if (!is_ragged()) std::fill_n(offsets, (shape_rows_ - rows) * row_elements, offset);
    return;
  }
  StopLook look;
  const auto append = [&](const char* bytes, size_t size) {
    look.Did(size + kStringWork);
    CopyInPieces(values + offset, bytes, size);
    *offsets++ = offset += static_cast<int64_t>(size);
  };
  const auto pad = [&](size_t count) {
    for (size_t i = 0; i < count; ++i) append(layout_.padding.data(), layout_.padding.size());
  };
  VisitRows([&](const Row& row, size_t) {
    const char* bytes = row.bytes;
    size_t filled = 0;
    VisitRuns(Shape(row.dims, row.dims + axes()), shape_,
              [&](size_t from, size_t to, size_t count) {
                pad(to - filled);
                for (size_t i = from; i < from + count; bytes += row.sizes[i++])
                  append(bytes, row.sizes[i]);
                filled = to + count;
              });
    pad(row_elements - filled);
    ++rows;
  });
  pad((shape_rows_ - rows) * row_elements);
}

// Row splits of every ragged axis: an axis of one size has them too.
void VariableTensor::WriteSplits(uint8_t* const* parts) const {
  for (int axis = 0; axis < tensor_.ragged_rank; ++axis) {
    auto* splits = reinterpret_cast<int64_t*>(parts[axis]);
    int64_t end = 0;
    *splits++ = 0;
    uint32_t rows = 0;
    VisitRows([&](const Row& row, size_t) {
      const auto count = static_cast<int64_t>(Elements(row.dims, axis));
      for (int64_t i = 0; i < count; ++i) *splits++ = end += row.dims[axis];
      ++rows;
    });
    if (axis == 0) std::fill_n(splits, shape_rows_ - rows, end);
  }
}

}  // namespace penstock
