#include "server/engine/read/element_cells.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/packed_row.h"
#include "io/element/element_file.h"
#include "server/engine/read/row_block.h"

namespace penstock {
namespace {

constexpr size_t kAlignment = 16;
// Values up to this size are put side by side again, longer ones stay in their cells.
constexpr size_t kGatheredBytes = 64;

size_t Aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

// A copy of so many bytes; those of single numbers without a call.
void CopyValue(uint8_t* to, const uint8_t* from, size_t bytes) {
  switch (bytes) {
    case 8:
      std::memcpy(to, from, 8);
      return;
    case 4:
      std::memcpy(to, from, 4);
      return;
    case 1:
      *to = *from;
      return;
    default:
      std::memcpy(to, from, bytes);
  }
}

// What lies at `offset` in each cell, side by side.
template <size_t kBytes>
void Gather(RowReferences rows, size_t offset, uint8_t* to) {
  for (uint32_t row = 0; row < rows.rows; ++row)
    std::memcpy(to + row * kBytes, rows[row].data + offset, kBytes);
}

void GatherValues(RowReferences rows, size_t offset, size_t bytes, uint8_t* to) {
  switch (bytes) {
    case 8:
      return Gather<8>(rows, offset, to);
    case 4:
      return Gather<4>(rows, offset, to);
    case 2:
      return Gather<2>(rows, offset, to);
    case 1:
      return Gather<1>(rows, offset, to);
    default:
      for (uint32_t row = 0; row < rows.rows; ++row)
        std::memcpy(to + row * bytes, rows[row].data + offset, bytes);
  }
}

absl::Status Damaged() {
  return absl::DataLossError(
      "a kept element no longer is what was written: its file was damaged while it was in use "
      "(penstock cache verify)");
}

}  // namespace

ElementCells::ElementCells(Signature signature, size_t hidden, bool locates_batch)
    : visible_(signature.begin() + hidden, signature.end()),
      first_visible_(hidden),
      locates_batch_(locates_batch) {
  fixed_bytes_ = kAlignment;  // the path
  for (const Feature& feature : signature) {
    Place place;
    place.offset = fixed_bytes_;
    place.type = feature.type;
    if (const std::optional<int64_t> bytes = NumBytes(feature.type)) {
      place.fixed = true;
      place.bytes = *bytes;
      fixed_bytes_ += Aligned(*bytes);
    } else {
      const Shape& shape = feature.type.shape;
      // Packed rows tell their sizes themselves.
      if (!feature.type.packed() &&
          std::find(shape.begin(), shape.end(), kUnknownSize) != shape.end())
        place.dims = shape.size();
      fixed_bytes_ += Aligned(sizeof(Extent) + place.dims * sizeof(int64_t));
    }
    places_.push_back(place);
  }
}

uint64_t ElementCells::CellBytes(absl::Span<const Column> columns, int row) const {
  uint64_t bytes = fixed_bytes_;
  for (size_t i = 0; i < places_.size(); ++i) {
    if (!places_[i].fixed) bytes += Aligned(columns[i].row_size(row));
  }
  return bytes;
}

absl::Status ElementCells::Pack(absl::Span<const Column> columns, int row, CellCache& cells,
                                RecordRef* reference, uint64_t path) const {
  const uint64_t bytes = CellBytes(columns, row);
  if (bytes > UINT32_MAX) {
    return absl::ResourceExhaustedError(
        absl::StrCat("an element is larger than it may be: ", bytes, " > ", UINT32_MAX, " bytes"));
  }
  uint8_t* const cell = cells.Take(static_cast<uint32_t>(bytes));
  Write(columns, row, path, cell);
  reference->data = cell;
  reference->in_map = 0;
  // What its origin was, a record of a global shuffle, say, it is not.
  reference->resolved = 0;
  reference->length = static_cast<uint32_t>(bytes);
  return absl::OkStatus();
}

void ElementCells::Write(absl::Span<const Column> columns, int row, uint64_t path,
                         uint8_t* cell) const {
  // No byte of a cell is left as it was found: it may go to a file.
  const auto pad = [cell](uint64_t begin) { std::memset(cell + begin, 0, Aligned(begin) - begin); };
  std::memset(cell, 0, kAlignment);
  std::memcpy(cell, &path, sizeof(path));
  uint64_t end = fixed_bytes_;
  for (size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const Column& column = columns[i];
    if (place.fixed) {
      // Its last sixteen bytes are padded before they are written.
      if (place.bytes % kAlignment != 0)
        std::memset(cell + place.offset + place.bytes / kAlignment * kAlignment, 0, kAlignment);
      if (place.bytes > 0) CopyValue(cell + place.offset, column.row(row), place.bytes);
      continue;
    }
    const Extent extent{end, column.row_size(row)};
    std::memcpy(cell + place.offset, &extent, sizeof(extent));
    if (place.dims > 0) {
      std::memcpy(cell + place.offset + sizeof(extent), column.dims + row * place.dims,
                  place.dims * sizeof(int64_t));
    }
    pad(place.offset + sizeof(extent) + place.dims * sizeof(int64_t));
    if (extent.bytes > 0) std::memcpy(cell + end, column.row(row), extent.bytes);
    pad(end + extent.bytes);
    end += Aligned(extent.bytes);
  }
}

uint64_t ElementCells::PackedPath(const RecordRef& element) {
  if (RowBlock::HasRow(element)) return RowBlock::PathOf(element);
  uint64_t path;
  std::memcpy(&path, element.data, sizeof(path));
  return path;
}

uint64_t ElementCells::Path(const RecordRef& reference) const {
  const uint64_t path = PackedPath(reference);
  return path == 0 ? ColumnLoader::Path(reference) : MixPath(path, reference.epoch);
}

std::unique_ptr<ElementCells> ElementCells::Showing(size_t first, Signature visible) const {
  auto cells = std::make_unique<ElementCells>(*this);
  cells->first_visible_ = first_visible_ + first;
  cells->visible_ = std::move(visible);
  return cells;
}

int64_t ElementCells::First(const RecordRef& element) {
  int64_t value = 0;
  std::memcpy(&value, element.data + kAlignment, sizeof(value));
  return value;
}

absl::StatusOr<std::string> ElementCells::Value(const RecordRef& element, size_t feature) const {
  if (RowBlock::HasRow(element)) {
    const absl::Span<const Column> columns = RowBlock::Of(element).columns();
    const auto row = static_cast<int>(element.length);
    std::vector<uint8_t> cell(CellBytes(columns, row));
    Write(columns, row, RowBlock::PathOf(element), cell.data());
    return ValueOf(cell.data(), feature);
  }
  if (!element.in_map) return ValueOf(element.data, feature);
  std::vector<uint8_t> copy(element.length);
  if (!CopyMapped(element, copy.data())) return Damaged();
  return ValueOf(copy.data(), feature);
}

std::string ElementCells::ValueOf(const uint8_t* cell, size_t feature) const {
  const Place& place = places_[first_visible_ + feature];
  const auto* const at = reinterpret_cast<const char*>(cell + place.offset);
  if (place.fixed) return std::string(at, place.bytes);
  Extent extent;
  std::memcpy(&extent, at, sizeof(extent));
  std::string value(at + sizeof(extent), place.dims * sizeof(int64_t));
  value.append(reinterpret_cast<const char*>(cell + extent.offset), extent.bytes);
  return value;
}

bool ElementCells::CopyMapped(const RecordRef& element, uint8_t* copy) const {
  std::memcpy(copy, element.data, element.length);
  return ElementHolds(element.data - kElementFrameBytes, copy, element.length) &&
         IsCell(copy, element.length);
}

bool ElementCells::IsCell(const uint8_t* cell, uint32_t length) const {
  if (length < fixed_bytes_) return false;
  for (const Place& place : places_) {
    if (place.fixed) continue;
    Extent extent;
    std::memcpy(&extent, cell + place.offset, sizeof(extent));
    if (extent.offset < fixed_bytes_ || extent.offset > length ||
        extent.bytes > length - extent.offset)
      return false;
    if (place.type.packed()) {
      // Numbers in it are found as they are aligned in memory.
      if (extent.offset % kAlignment != 0 ||
          !IsPackedRow(place.type, cell + extent.offset, extent.bytes))
        return false;
      continue;
    }
    Shape shape = place.type.shape;
    for (size_t axis = 0; axis < place.dims; ++axis) {
      std::memcpy(&shape[axis], cell + place.offset + sizeof(extent) + axis * sizeof(int64_t),
                  sizeof(int64_t));
      const int64_t known = place.type.shape[axis];
      if (shape[axis] < 0 || (known != kUnknownSize && known != shape[axis])) return false;
    }
    if (place.type.dtype != DType::kString) {
      const std::optional<int64_t> bytes = NumBytes({place.type.dtype, shape});
      if (!bytes || static_cast<uint64_t>(*bytes) != extent.bytes) return false;
      continue;
    }
    if (shape.empty()) continue;
    // The sizes of all strings, then their bytes.
    const std::optional<int64_t> count = NumElements(shape);
    if (!count || static_cast<uint64_t>(*count) > extent.bytes / sizeof(uint32_t)) return false;
    uint64_t sum = *count * sizeof(uint32_t);
    for (int64_t i = 0; i < *count; ++i) {
      uint32_t size;
      std::memcpy(&size, cell + extent.offset + i * sizeof(size), sizeof(size));
      sum += size;
    }
    if (sum != extent.bytes) return false;
  }
  return true;
}

RowStatus ElementCells::LoadMapped(RowReferences rows, FileTable& files, absl::Span<Column> out,
                                   Arena& arena) const {
  const auto damaged = [](uint32_t row) { return RowStatus{Damaged(), static_cast<int>(row)}; };
  bool straight = true;
  for (size_t i = 0; i < visible_.size(); ++i) {
    const Place& place = places_[first_visible_ + i];
    straight = straight && place.fixed && out[i].data != nullptr;
  }
  auto* const own = arena.AllocateArray<RecordRef>(rows.rows);
  for (uint32_t row = 0; row < rows.rows; ++row) {
    own[row] = rows[row];
    const RecordRef& reference = rows[row];
    if (!reference.in_map) continue;
    if (straight) {
      if (reference.length < fixed_bytes_) return damaged(row);
      continue;
    }
    uint8_t* const copy = arena.Allocate(reference.length);
    if (!CopyMapped(reference, copy)) return damaged(row);
    own[row].data = copy;
    own[row].in_map = 0;
    own[row].resolved = 0;
  }
  if (!straight) return Load({own, rows.rows, 1}, files, out, arena);
  for (size_t i = 0; i < visible_.size(); ++i) out[i].row_bytes = places_[first_visible_ + i].bytes;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    for (size_t i = 0; i < visible_.size(); ++i) {
      const Place& place = places_[first_visible_ + i];
      std::memcpy(out[i].data + row * place.bytes, rows[row].data + place.offset, place.bytes);
    }
    // Behind the copy, since a page that goes away stays away.
    if (rows[row].in_map &&
        !ElementHolds(rows[row].data - kElementFrameBytes, rows[row].data, rows[row].length))
      return damaged(row);
  }
  return {};
}

RowStatus ElementCells::Load(RowReferences rows, FileTable& files, absl::Span<Column> out,
                             Arena& arena) const {
  uint32_t of_blocks = 0;
  bool mapped = false;
  for (uint32_t row = 0; row < rows.rows; ++row) {
    of_blocks += RowBlock::HasRow(rows[row]) ? 1 : 0;
    mapped |= rows[row].in_map != 0;
  }
  if (of_blocks == rows.rows) {
    RowBlock::Load(rows, visible_, first_visible_, out, arena);
    return {};
  }
  if (of_blocks > 0) {
    // Beside others they are as those.
    auto* const own = arena.AllocateArray<RecordRef>(rows.rows);
    for (uint32_t row = 0; row < rows.rows; ++row) {
      own[row] = rows[row];
      if (!RowBlock::HasRow(rows[row])) continue;
      const absl::Span<const Column> columns = RowBlock::Of(rows[row]).columns();
      const auto number = static_cast<int>(rows[row].length);
      const uint64_t bytes = CellBytes(columns, number);
      uint8_t* const cell = arena.Allocate(bytes);
      Write(columns, number, RowBlock::PathOf(rows[row]), cell);
      own[row].data = cell;
      own[row].length = static_cast<uint32_t>(bytes);
      own[row].resolved = 0;
    }
    return Load({own, rows.rows, 1}, files, out, arena);
  }
  if (mapped) return LoadMapped(rows, files, out, arena);
  for (size_t i = 0; i < visible_.size(); ++i) {
    const Place& place = places_[first_visible_ + i];
    Column& column = out[i];
    if (place.fixed && (column.data != nullptr || place.bytes <= kGatheredBytes)) {
      column.row_bytes = place.bytes;
      if (column.data == nullptr) column.data = arena.Allocate(rows.rows * place.bytes);
      GatherValues(rows, place.offset, place.bytes, column.data);
      continue;
    }
    auto* values = arena.AllocateArray<RowBytes>(rows.rows);
    auto* dims = place.dims > 0 ? arena.AllocateArray<int64_t>(rows.rows * place.dims) : nullptr;
    for (uint32_t row = 0; row < rows.rows; ++row) {
      const uint8_t* const cell = rows[row].data;
      if (place.fixed) {
        values[row] = {cell + place.offset, place.bytes};
        continue;
      }
      Extent extent;
      std::memcpy(&extent, cell + place.offset, sizeof(extent));
      values[row] = {cell + extent.offset, extent.bytes};
      if (place.dims > 0) {
        std::memcpy(dims + row * place.dims, cell + place.offset + sizeof(extent),
                    place.dims * sizeof(int64_t));
      }
    }
    column.rows = values;
    column.dims = dims;
  }
  return {};
}

}  // namespace penstock
