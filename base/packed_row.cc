#include "base/packed_row.h"

#include <algorithm>
#include <cstring>

#include "base/in_pieces.h"

namespace penstock {
namespace {

// The values that fill the rest of a row.
PackedValues ValuesAt(DType dtype, size_t count, const uint8_t* at, const uint8_t* end) {
  PackedValues values;
  values.count = count;
  if (dtype == DType::kString) {
    values.string_sizes = at;
    at += count * sizeof(uint32_t);
  }
  values.bytes = at;
  values.size = static_cast<size_t>(end - at);
  return values;
}

size_t ValuesBytes(const PackedValues& values) {
  return values.size + (values.string_sizes != nullptr ? values.count * sizeof(uint32_t) : 0);
}

uint8_t* WriteBytes(const void* from, size_t bytes, uint8_t* to) {
  CopyInPieces(to, from, bytes);
  return to + bytes;
}

void WriteValues(const PackedValues& values, uint8_t* to) {
  if (values.string_sizes != nullptr)
    to = WriteBytes(values.string_sizes, values.count * sizeof(uint32_t), to);
  WriteBytes(values.bytes, values.size, to);
}

// What is left of a row's bytes, which may be anything.
class Rest {
 public:
  Rest(const uint8_t* data, size_t size) : at_(data), left_(size) {}

  size_t left() const { return left_; }
  // As many numbers as may be there.
  size_t numbers() const { return left_ / sizeof(int64_t); }
  // REQUIRES: numbers() > 0.
  int64_t Take() {
    int64_t value;
    std::memcpy(&value, at_, sizeof(value));
    Skip(sizeof(value));
    return value;
  }
  void Skip(size_t bytes) {
    at_ += bytes;
    left_ -= bytes;
  }
  // Whether the rest is that many values.
  bool IsValues(DType dtype, uint64_t count) {
    if (dtype != DType::kString) {
      const size_t element = DTypeSize(dtype);
      return left_ % element == 0 && left_ / element == count;
    }
    if (count > left_ / sizeof(uint32_t)) return false;
    uint64_t bytes = count * sizeof(uint32_t);
    for (uint64_t i = 0; i < count; ++i) {
      uint32_t size;
      std::memcpy(&size, at_ + i * sizeof(size), sizeof(size));
      bytes += size;
    }
    return bytes == left_;
  }

 private:
  const uint8_t* at_;
  size_t left_;
};

bool IsRaggedRow(const TensorType& type, Rest rest) {
  // The rows of the outermost axis are those of the shape, where it tells them.
  int64_t items = type.shape[0];
  for (size_t axis = 0; axis < PackedRaggedRank(type.shape); ++axis) {
    if (rest.numbers() < 2) return false;
    const int64_t rows = rest.Take();
    if (rows < 0 || static_cast<uint64_t>(rows) >= rest.numbers()) return false;
    if (items != kUnknownSize && rows != items) return false;
    items = rest.Take();
    if (items != 0) return false;
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t end = rest.Take();
      if (end < items) return false;
      items = end;
    }
  }
  for (size_t axis = 1; axis < type.shape.size(); ++axis) {
    if (type.shape[axis] >= 0 && __builtin_mul_overflow(items, type.shape[axis], &items))
      return false;
  }
  return rest.IsValues(type.dtype, static_cast<uint64_t>(items));
}

bool IsSparseRow(const TensorType& type, Rest rest) {
  const size_t axes = type.shape.size();
  if (rest.numbers() < 1 + axes) return false;
  const int64_t count = rest.Take();
  for (size_t axis = 0; axis < axes; ++axis) {
    if (rest.Take() < 0) return false;
  }
  if (count < 0 || static_cast<uint64_t>(count) > rest.numbers() / axes) return false;
  rest.Skip(static_cast<size_t>(count) * axes * sizeof(int64_t));
  return rest.IsValues(type.dtype, static_cast<uint64_t>(count));
}

}  // namespace

bool IsPackedRow(const TensorType& type, const uint8_t* data, size_t size) {
  return type.form == RowForm::kPackedRagged ? IsRaggedRow(type, {data, size})
                                             : IsSparseRow(type, {data, size});
}

size_t PackedRaggedRank(const Shape& shape) {
  return static_cast<size_t>(std::count(shape.begin() + 1, shape.end(), kUnknownSize));
}

RowBytes PackRagged(absl::Span<const std::vector<int64_t>> splits, const PackedValues& values,
                    Arena& arena) {
  size_t bytes = ValuesBytes(values);
  for (const std::vector<int64_t>& axis : splits) bytes += (axis.size() + 1) * sizeof(int64_t);
  uint8_t* const row = arena.Allocate(bytes);
  uint8_t* to = row;
  for (const std::vector<int64_t>& axis : splits) {
    const int64_t rows = static_cast<int64_t>(axis.size()) - 1;
    to = WriteBytes(&rows, sizeof(rows), to);
    to = WriteBytes(axis.data(), axis.size() * sizeof(int64_t), to);
  }
  WriteValues(values, to);
  return {row, bytes};
}

RowBytes PackSparse(absl::Span<const int64_t> sizes, absl::Span<const int64_t> indices,
                    const PackedValues& values, Arena& arena) {
  const size_t bytes = (1 + sizes.size() + indices.size()) * sizeof(int64_t) + ValuesBytes(values);
  uint8_t* const row = arena.Allocate(bytes);
  const auto count = static_cast<int64_t>(values.count);
  uint8_t* to = WriteBytes(&count, sizeof(count), row);
  to = WriteBytes(sizes.data(), sizes.size() * sizeof(int64_t), to);
  to = WriteBytes(indices.data(), indices.size() * sizeof(int64_t), to);
  WriteValues(values, to);
  return {row, bytes};
}

RaggedRow ReadRaggedRow(const TensorType& type, const RowBytes& row) {
  RaggedRow ragged;
  const auto* at = reinterpret_cast<const int64_t*>(row.data);
  int64_t items = 0;
  for (size_t axis = 0; axis < PackedRaggedRank(type.shape); ++axis) {
    const int64_t rows = *at++;
    ragged.splits.emplace_back(at, static_cast<size_t>(rows) + 1);
    at += rows + 1;
    items = at[-1];
  }
  // The axes behind the ragged ones.
  for (size_t axis = 1; axis < type.shape.size(); ++axis) {
    if (type.shape[axis] >= 0) items *= type.shape[axis];
  }
  ragged.values = ValuesAt(type.dtype, static_cast<size_t>(items),
                           reinterpret_cast<const uint8_t*>(at), row.data + row.size);
  return ragged;
}

SparseRow ReadSparseRow(const TensorType& type, const RowBytes& row) {
  SparseRow sparse;
  const auto* at = reinterpret_cast<const int64_t*>(row.data);
  const auto count = static_cast<size_t>(*at++);
  sparse.sizes = absl::MakeConstSpan(at, type.shape.size());
  at += sparse.sizes.size();
  sparse.indices = absl::MakeConstSpan(at, count * type.shape.size());
  at += sparse.indices.size();
  sparse.values =
      ValuesAt(type.dtype, count, reinterpret_cast<const uint8_t*>(at), row.data + row.size);
  return sparse;
}

PackedValues ReadDenseRow(DType dtype, size_t count, const RowBytes& row) {
  return ValuesAt(dtype, count, row.data, row.data + row.size);
}

}  // namespace penstock
