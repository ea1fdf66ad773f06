#include "server/python/sheet_form.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/streaming_copy.h"

namespace penstock::python {
namespace {

constexpr uint64_t kAlignment = 64;
// A batch of such rows does not stay in a processor's cache until a trainer reads it.
constexpr uint64_t kLargeRowBytes = 64 << 10;

uint64_t Aligned(uint64_t offset) { return (offset + kAlignment - 1) & ~(kAlignment - 1); }

absl::Status Forged(absl::string_view what) {
  return absl::InternalError(
      absl::StrCat("a Python worker process handed over memory that is no result: ", what));
}

// The number of strings of a row.
uint64_t CountOf(const Shape& shape, const int64_t* dims) {
  uint64_t count = 1;
  for (size_t axis = 0; axis < shape.size(); ++axis)
    count *= static_cast<uint64_t>(dims != nullptr ? dims[axis] : shape[axis]);
  return count;
}

}  // namespace

SheetForm::SheetForm(Signature features) : features_(std::move(features)) {
  for (const Feature& feature : features_) {
    const std::optional<int64_t> bytes = NumBytes(feature.type);
    parts_.push_back({.row_bytes = static_cast<uint64_t>(bytes.value_or(0)),
                      .is_fixed = bytes.has_value(),
                      .has_dims = HasUnknownSize(feature.type.shape)});
  }
}

std::vector<SheetForm::Place> SheetForm::Places(uint32_t rows, uint64_t* data) const {
  std::vector<Place> places(parts_.size());
  uint64_t offset = 0;
  for (size_t i = 0; i < parts_.size(); ++i) {
    places[i].values = offset = Aligned(offset);
    if (parts_[i].is_fixed) {
      offset += rows * parts_[i].row_bytes;
      continue;
    }
    places[i].dims = offset = Aligned(offset + uint64_t{rows} * 2 * sizeof(uint64_t));
    offset += rows * features_[i].type.shape.size() * sizeof(int64_t);
  }
  *data = Aligned(offset);
  return places;
}

uint64_t SheetForm::Measure(absl::Span<const Column> columns, uint32_t first, uint32_t rows) const {
  uint64_t bytes = 0;
  Places(rows, &bytes);
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].is_fixed) continue;
    for (uint32_t row = first; row < first + rows; ++row)
      bytes += Aligned(columns[i].row_size(row));
  }
  return bytes;
}

void SheetForm::Lay(absl::Span<const Column> columns, uint32_t first, uint32_t rows,
                    uint8_t* to) const {
  uint64_t data = 0;
  const std::vector<Place> places = Places(rows, &data);
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Column& column = columns[i];
    uint8_t* const values = to + places[i].values;
    if (parts_[i].is_fixed) {
      const uint64_t row_bytes = parts_[i].row_bytes;
      if (column.rows == nullptr && column.row_bytes == row_bytes) {
        if (row_bytes > 0) std::memcpy(values, column.row(first), rows * row_bytes);
        continue;
      }
      // Of a row's identity the first number is its path.
      for (uint32_t row = 0; row < rows; ++row)
        std::memcpy(values + row * row_bytes, column.row(first + row), row_bytes);
      continue;
    }
    auto* const table = reinterpret_cast<uint64_t*>(values);
    auto* const sizes = reinterpret_cast<int64_t*>(to + places[i].dims);
    const Shape& shape = features_[i].type.shape;
    for (uint32_t row = 0; row < rows; ++row) {
      const uint64_t bytes = column.row_size(first + row);
      table[2 * row] = data;
      table[2 * row + 1] = bytes;
      const int64_t* const dims =
          column.dims != nullptr ? column.dims + (first + row) * shape.size() : shape.data();
      std::copy_n(dims, shape.size(), sizes + row * shape.size());
      if (bytes > 0) std::memcpy(to + data, column.row(first + row), bytes);
      data += Aligned(bytes);
    }
  }
}

bool SheetForm::Prepare(uint32_t rows, absl::Span<Column> columns, Arena* arena) const {
  bool has_place = false;
  for (size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].is_fixed) {
      columns[i].row_bytes = parts_[i].row_bytes;
      has_place |= columns[i].data != nullptr;
      if (columns[i].data == nullptr) columns[i].data = arena->Allocate(rows * parts_[i].row_bytes);
      continue;
    }
    auto* const places = arena->AllocateArray<RowBytes>(rows);
    std::fill_n(places, rows, RowBytes{});
    columns[i].rows = places;
    if (parts_[i].has_dims)
      columns[i].dims = arena->AllocateArray<int64_t>(rows * features_[i].type.shape.size());
  }
  return has_place;
}

absl::Status SheetForm::Take(const uint8_t* from, uint64_t bytes, uint32_t first, uint32_t made,
                             uint32_t rows, absl::Span<Column> columns, Arena* arena,
                             bool for_others, LoneRowRoom* room) const {
  if (made > rows) return Forged("it has more rows than were asked for");
  uint64_t data = 0;
  const std::vector<Place> places = Places(rows, &data);
  if (bytes < data) return Forged("it is shorter than its rows");
  for (size_t i = 0; i < parts_.size(); ++i) {
    const uint8_t* const values = from + places[i].values;
    if (parts_[i].is_fixed) {
      const uint64_t size = made * parts_[i].row_bytes;
      uint8_t* const to = columns[i].data + first * parts_[i].row_bytes;
      const bool is_bool = features_[i].type.dtype == DType::kBool;
      if (for_others && parts_[i].row_bytes >= kLargeRowBytes && !is_bool) {
        CopyPastCaches(to, values, size);
      } else if (size > 0) {
        std::memcpy(to, values, size);
      }
      // Whoever works on flags takes them for 0 or 1.
      if (is_bool)
        std::transform(to, to + size, to, [](uint8_t flag) { return uint8_t{flag != 0}; });
      continue;
    }
    const size_t axes = features_[i].type.shape.size();
    std::vector<uint64_t> table(size_t{made} * 2);
    std::vector<int64_t> sizes(made * axes);
    if (made > 0) std::memcpy(table.data(), values, table.size() * sizeof(uint64_t));
    if (!sizes.empty())
      std::memcpy(sizes.data(), from + places[i].dims, sizes.size() * sizeof(int64_t));
    auto* const to = const_cast<RowBytes*>(columns[i].rows) + first;
    for (uint32_t row = 0; row < made; ++row) {
      absl::Status status = TakeRow(i, from, bytes, &table[2 * row], sizes.data() + row * axes,
                                    to + row, arena, room);
      if (!status.ok()) return status;
    }
    if (columns[i].dims != nullptr)
      std::copy(sizes.begin(), sizes.end(), const_cast<int64_t*>(columns[i].dims) + first * axes);
  }
  return absl::OkStatus();
}

absl::Status SheetForm::TakeRow(size_t feature, const uint8_t* from, uint64_t bytes,
                                const uint64_t* place, const int64_t* dims, RowBytes* to,
                                Arena* arena, LoneRowRoom* room) const {
  const uint64_t offset = place[0], size = place[1];
  if (offset > bytes || size > bytes - offset || size > UINT32_MAX)
    return Forged("a row lies outside of it");
  const TensorType& type = features_[feature].type;
  uint64_t count = 1;
  for (size_t axis = 0; axis < type.shape.size(); ++axis) {
    if (dims[axis] < 0 || (type.shape[axis] != kUnknownSize && dims[axis] != type.shape[axis]))
      return Forged("a row has another shape");
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(dims[axis]), &count) ||
        count > UINT32_MAX)
      return Forged("a row has a shape that is too large");
  }
  if (type.dtype != DType::kString && count * DTypeSize(type.dtype) != size)
    return Forged("a row's size is not its shape's");
  const bool is_plain = type.dtype != DType::kString && type.dtype != DType::kBool;
  uint8_t* const there =
      room != nullptr && is_plain && size >= kLargeRowBytes ? room->Take(size) : nullptr;
  if (there != nullptr) {
    CopyPastCaches(there, from + offset, size);
    *to = {there, size};
    return absl::OkStatus();
  }
  uint8_t* const copy = arena->Allocate(size);
  if (size > 0) std::memcpy(copy, from + offset, size);
  *to = {copy, size};
  if (type.dtype != DType::kString) {
    if (type.dtype == DType::kBool)
      std::transform(copy, copy + size, copy, [](uint8_t flag) { return uint8_t{flag != 0}; });
    return absl::OkStatus();
  }
  if (type.shape.empty()) return absl::OkStatus();
  const uint64_t strings = CountOf(type.shape, dims);
  uint64_t expected = strings * sizeof(uint32_t);
  if (expected > size) return Forged("a row has fewer strings than its shape");
  for (uint64_t i = 0; i < strings; ++i) {
    uint32_t length = 0;
    std::memcpy(&length, copy + i * sizeof(length), sizeof(length));
    expected += length;
  }
  return expected == size ? absl::OkStatus() : Forged("the strings of a row are not as long as it");
}

}  // namespace penstock::python
