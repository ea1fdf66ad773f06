#include "server/engine/tensor/variable_rows.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/staying_room.h"
#include "server/engine/read/row_block.h"
#include "server/engine/tensor/part_places.h"

namespace penstock {
namespace {

// Whether the bytes of each row lie in the cell of one of its records, or in the room of what this
// thread runs.
bool Stay(const Column& column, uint32_t rows, const RecordRef* records, uint32_t width) {
  if (records == nullptr || column.rows == nullptr) return false;
  const StayingRoom* const room = StayingRoom::OfThisThread();
  for (uint32_t row = 0; row < rows; ++row) {
    const RowBytes& bytes = column.rows[row];
    const bool stays = bytes.size == 0 || (room != nullptr && room->Has(bytes.data, bytes.size)) ||
                       std::any_of(records + size_t{row} * width, records + size_t{row + 1} * width,
                                   [&bytes](const RecordRef& record) {
                                     if (RowBlock::HasRow(record))
                                       return RowBlock::Holds(record, bytes);
                                     return record.in_cell() && bytes.data >= record.data &&
                                            bytes.data + bytes.size <= record.data + record.length;
                                   });
    if (!stays) return false;
  }
  return true;
}

}  // namespace

void VariableRows::Reset(absl::Span<const BatchTensor> tensors, absl::Span<const RowLayout> layouts,
                         uint32_t blocks) {
  blocks_taken_.store(0, std::memory_order_relaxed);
  charge_.Clear();
  if (of_tensor_.empty()) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      of_tensor_.push_back(tensors[i].fixed() ? -1 : static_cast<int>(tensors_.size()));
      if (!tensors[i].fixed()) tensors_.push_back(MakeJoinedTensor(tensors[i], layouts[i]));
    }
  }
  for (const auto& tensor : tensors_) tensor->Reset(blocks);
  room_.Reset();
  Show({0, UINT32_MAX});
}

LoneRowRoom* VariableRows::RoomIn(const ClaimedSlot& slot) {
  if (!std::all_of(tensors_.begin(), tensors_.end(),
                   [](const auto& tensor) { return tensor->may_lie_in_slot(); }))
    return nullptr;
  room_.In(slot);
  return &room_;
}

void VariableRows::Show(RowSpan rows) {
  shown_ = rows;
  for (const auto& tensor : tensors_) tensor->Show(rows);
}

RowStatus VariableRows::Put(size_t tensor, uint32_t block, uint32_t first, uint32_t rows,
                            const Column& column, const RecordRef* records, uint32_t width) {
  JoinedTensor& joined = *tensors_[of_tensor_[tensor]];
  if (column.rows != nullptr && room_.Has(column.rows[0].data, column.rows[0].size)) {
    joined.PutInSlot(block, first, column);
    return {};
  }
  if (joined.keeps_places() && Stay(column, rows, records, width))
    return joined.PutStaying(block, first, rows, column);
  uint64_t bytes = 0;
  for (uint32_t row = 0; row < rows; ++row) {
    if (shown_.Has(uint64_t{first} + row)) bytes += column.row_size(static_cast<int>(row));
  }
  charge_.Add(bytes);
  return joined.Put(block, first, rows, column);
}

RowStatus VariableRows::Measure(uint32_t rows, uint32_t shape_rows,
                                std::vector<TensorExtent>* extents, uint64_t* bytes) {
  extents->clear();
  // Behind what lies there already.
  uint64_t end = room_.end();
  // Of several tensors' failures the lowest row's counts.
  RowStatus failure;
  for (const auto& tensor : tensors_) {
    tensor->Order(blocks_taken_.load(std::memory_order_relaxed));
    JoinedTensor::PartBytes part_bytes;
    RowStatus status = tensor->Measure(rows, shape_rows, &part_bytes);
    if (!status.ok()) {
      if (failure.ok() || status.row < failure.row) failure = std::move(status);
      continue;
    }
    TensorExtent& extent = extents->emplace_back();
    const uint8_t* const there = tensor->in_slot();
    for (size_t part = 0; part < tensor->num_parts(); ++part) {
      if (part == 0 && there != nullptr) {
        extent.parts[part] = {room_.OffsetOf(there), part_bytes[part]};
        continue;
      }
      extent.parts[part] = {end, part_bytes[part]};
      end = NextPart(end + part_bytes[part]);
    }
  }
  *bytes = end;
  return failure;
}

void VariableRows::Write(uint8_t* variable, const std::vector<TensorExtent>& extents) const {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    std::array<uint8_t*, JoinedTensor::kParts> parts;
    for (size_t part = 0; part < parts.size(); ++part)
      parts[part] = variable + extents[i].parts[part].offset;
    tensors_[i]->Write(parts);
  }
}

RowStatus VariableRows::Lay(const ClaimedSlot& slot, uint32_t rows, uint32_t shape_rows,
                            std::vector<TensorExtent>* extents) {
  uint64_t bytes = 0;
  if (RowStatus status = Measure(rows, shape_rows, extents, &bytes); !status.ok()) return status;
  if (bytes > slot.variable_bytes) {
    return {
        absl::ResourceExhaustedError(absl::StrCat(
            "batch larger than slot: what only the data tells the size of needs ",
            bytes == JoinedTensor::kTooMany ? "2^60 or more" : absl::StrCat(bytes), " > ",
            slot.variable_bytes, " bytes; raise ring { slot_bytes: N } or take smaller batches")),
        -1};
  }
  if (slot.grows != nullptr) slot.grows->MakeRoom(slot.slot, bytes);
  Write(slot.variable, *extents);
  return {};
}

}  // namespace penstock
