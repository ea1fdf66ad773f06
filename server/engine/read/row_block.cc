#include "server/engine/read/row_block.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "base/dtype.h"
#include "base/row_identity.h"
#include "base/row_shape.h"

namespace penstock {
namespace {

constexpr uint64_t kAlignment = 64;
constexpr uint64_t kRowAlignment = 16;
// As ElementCells has it: values up to this size are put side by side.
constexpr size_t kGatheredBytes = 64;

uint64_t Aligned(uint64_t bytes, uint64_t to) { return (bytes + to - 1) / to * to; }

bool LiesIn(absl::Span<const uint8_t> outside, const uint8_t* data, uint64_t size) {
  return data >= outside.data() && data + size <= outside.data() + outside.size();
}

// How the rows of a feature lie in a block.
struct Part {
  const Column* column = nullptr;
  uint64_t row_bytes = 0;  // of a fixed size
  size_t axes = 0;         // whose sizes each row has
  bool is_fixed = false;
  bool is_text = false;  // bytes that begin anywhere

  Part(const Feature& feature, const Column& of_feature) : column(&of_feature) {
    const std::optional<int64_t> bytes = NumBytes(feature.type);
    is_fixed = bytes.has_value();
    row_bytes = is_fixed ? static_cast<uint64_t>(*bytes) : 0;
    axes = !is_fixed && of_feature.dims != nullptr ? feature.type.shape.size() : 0;
    is_text = feature.type.dtype == DType::kString && feature.type.shape.empty();
  }

  uint64_t SizeIn(uint64_t size) const { return is_text ? size : Aligned(size, kRowAlignment); }
  // Of all of them.
  bool StaysOutside(uint32_t first, uint32_t rows, absl::Span<const uint8_t> outside) const {
    if (outside.empty()) return false;
    if (column->rows == nullptr) return LiesIn(outside, column->row(first), rows * row_bytes);
    if (is_fixed) return false;
    return std::all_of(column->rows + first, column->rows + first + rows, [&](const RowBytes& row) {
      return row.size == 0 || LiesIn(outside, row.data, row.size);
    });
  }
};

// Rows that lie one behind another go in one copy.
uint8_t* CopyRows(const Part& part, const RowBytes* from, uint32_t rows, RowBytes* places,
                  uint8_t* to) {
  for (uint32_t row = 0; row < rows;) {
    uint32_t end = row + 1;
    uint64_t size = from[row].size;
    places[row] = {to, from[row].size};
    while (part.is_text && end < rows && from[end].data == from[row].data + size) {
      places[end] = {to + size, from[end].size};
      size += from[end++].size;
    }
    if (size > 0) std::memcpy(to, from[row].data, size);
    to += part.SizeIn(size);
    row = end;
  }
  return to;
}

}  // namespace

uint64_t RowBlock::PathOf(const RecordRef& reference) {
  const RowBlock& block = Of(reference);
  return MixPath(block.path, block.first_row + reference.length);
}

bool RowBlock::Holds(const RecordRef& reference, const RowBytes& bytes) {
  const RowBlock& block = Of(reference);
  return LiesIn({reference.data, block.bytes}, bytes.data, bytes.size) ||
         (block.shows() && bytes.data >= block.outside &&
          bytes.data + bytes.size <= block.outside_end);
}

std::optional<uint32_t> RowBlock::RowsOfNext(const Signature& signature,
                                             absl::Span<const Column> columns, uint32_t first,
                                             uint32_t rows, absl::Span<const uint8_t> outside) {
  uint64_t fixed = 0;
  std::vector<Part> variable;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Part part(signature[i], columns[i]);
    fixed += part.is_fixed ? part.row_bytes : sizeof(RowBytes) + part.axes * sizeof(int64_t);
    if (!part.is_fixed && !part.StaysOutside(first, rows, outside)) variable.push_back(part);
  }
  // Its row's number is an address in it (KeyOf).
  fixed = std::max<uint64_t>(fixed, 1);
  if (fixed > kMaxRowBytes) return std::nullopt;
  const auto most = static_cast<uint32_t>(std::min<uint64_t>(rows, kMaxBytes / fixed));
  if (variable.empty()) return most;
  uint64_t bytes = 0;
  uint32_t row = 0;
  for (; row < most; ++row) {
    uint64_t of_row = fixed;
    for (const Part& part : variable)
      of_row += Aligned(part.column->row_size(first + row), kRowAlignment);
    if (bytes + of_row > kMaxBytes) break;
    bytes += of_row;
  }
  if (row == 0 || bytes / row > kMaxRowBytes) return std::nullopt;
  return row;
}

const RowBlock* RowBlock::Make(const Signature& signature, absl::Span<const Column> columns,
                               uint32_t first, uint32_t rows, absl::Span<const uint8_t> outside,
                               CellCache& cells) {
  const uint64_t begin = Aligned(sizeof(RowBlock) + columns.size() * sizeof(Column), kAlignment);
  uint64_t bytes = begin;
  std::vector<Part> parts;
  std::vector<bool> stays;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Part& part = parts.emplace_back(signature[i], columns[i]);
    stays.push_back(part.StaysOutside(first, rows, outside));
    if (part.is_fixed) {
      if (!stays[i]) bytes += Aligned(rows * part.row_bytes, kAlignment);
      continue;
    }
    bytes += Aligned(rows * sizeof(RowBytes), kAlignment) +
             Aligned(rows * part.axes * sizeof(int64_t), kAlignment);
    for (uint32_t row = first; !stays[i] && row < first + rows; ++row)
      bytes += part.SizeIn(columns[i].row_size(row));
    bytes = Aligned(bytes, kAlignment);
  }
  bytes = std::max<uint64_t>(bytes, rows);
  uint8_t* const cell = cells.Take(static_cast<uint32_t>(bytes));
  auto* const block = new (cell) RowBlock;
  auto* const shown = reinterpret_cast<Column*>(block + 1);
  block->rows = block->open = rows;
  block->bytes = static_cast<uint32_t>(bytes);
  block->num_columns = columns.size();
  uint64_t held = bytes;
  uint8_t* end = cell + begin;
  for (size_t i = 0; i < columns.size(); ++i) {
    const Part& part = parts[i];
    const Column& from = columns[i];
    Column* const to = new (shown + i) Column;
    if (stays[i]) {
      block->outside = outside.data();
      block->outside_end = outside.data() + outside.size();
    }
    if (part.is_fixed) {
      to->row_bytes = part.row_bytes;
      if (stays[i]) {
        to->data = const_cast<uint8_t*>(from.row(first));
        continue;
      }
      to->data = end;
      if (from.rows == nullptr && rows * part.row_bytes > 0) {
        std::memcpy(end, from.row(first), rows * part.row_bytes);
      } else {
        for (uint32_t row = 0; row < rows && part.row_bytes > 0; ++row)
          std::memcpy(end + row * part.row_bytes, from.row(first + row), part.row_bytes);
      }
      end += Aligned(rows * part.row_bytes, kAlignment);
      continue;
    }
    auto* const places = reinterpret_cast<RowBytes*>(end);
    to->rows = places;
    end += Aligned(rows * sizeof(RowBytes), kAlignment);
    if (part.axes > 0) {
      auto* const dims = reinterpret_cast<int64_t*>(end);
      std::copy_n(from.dims + first * part.axes, rows * part.axes, dims);
      to->dims = dims;
      end += Aligned(rows * part.axes * sizeof(int64_t), kAlignment);
    }
    if (stays[i]) {
      std::copy_n(from.rows + first, rows, places);
      continue;
    }
    end = CopyRows(part, from.rows + first, rows, places, end);
    end = cell + Aligned(static_cast<uint64_t>(end - cell), kAlignment);
  }
  if (block->shows()) held += outside.size();
  block->row_bytes = held / rows;
  return block;
}

void RowBlock::Load(RowReferences rows, const Signature& features, size_t first_feature,
                    absl::Span<Column> out, Arena& arena) {
  for (size_t i = 0; i < features.size(); ++i) {
    const std::optional<int64_t> fixed = NumBytes(features[i].type);
    Column& column = out[i];
    if (fixed && (column.data != nullptr || static_cast<size_t>(*fixed) <= kGatheredBytes)) {
      const auto bytes = static_cast<size_t>(*fixed);
      column.row_bytes = bytes;
      if (column.data == nullptr) column.data = arena.Allocate(rows.rows * bytes);
      for (uint32_t row = 0; row < rows.rows && bytes > 0;) {
        const RecordRef& first = rows[row];
        uint32_t count = 1;
        while (row + count < rows.rows && rows[row + count].data == first.data &&
               rows[row + count].length == first.length + count)
          ++count;
        std::memcpy(column.data + row * bytes,
                    Of(first).columns()[first_feature + i].row(first.length), count * bytes);
        row += count;
      }
      continue;
    }
    auto* const values = arena.AllocateArray<RowBytes>(rows.rows);
    const Shape& shape = features[i].type.shape;
    const bool has_dims = !fixed && !features[i].type.packed() && HasUnknownAxes(shape);
    auto* const dims = has_dims ? arena.AllocateArray<int64_t>(rows.rows * shape.size()) : nullptr;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const RecordRef& reference = rows[row];
      const Column& from = Of(reference).columns()[first_feature + i];
      values[row] = {from.row(reference.length), from.row_size(reference.length)};
      if (has_dims)
        std::copy_n(from.dims + reference.length * shape.size(), shape.size(),
                    dims + row * shape.size());
    }
    column.rows = values;
    column.dims = dims;
  }
}

uint64_t HeldBytes(const RecordList& records) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    const RecordRef& record = records[i];
    if (!record.in_cell()) continue;
    if (!RowBlock::HasRow(record)) {
      bytes += record.length;
      continue;
    }
    // Mostly all rows of a block stand one after another.
    const RowBlock& block = RowBlock::Of(record);
    const size_t last = i + (block.rows - 1 - record.length);
    const bool has_all = last < records.size() && records[last].data == record.data &&
                         records[last].length == block.rows - 1;
    bytes += block.row_bytes * (has_all ? last - i + 1 : 1);
    if (has_all) i = last;
  }
  return bytes;
}

}  // namespace penstock
