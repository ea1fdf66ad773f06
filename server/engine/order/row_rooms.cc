#include "server/engine/order/row_rooms.h"

#include <algorithm>

#include "io/record/record_chunk.h"

namespace penstock {

static_assert(RowRooms::kLeastBytes > kLateRecordBytes);

uint8_t* RowRooms::Take(uint64_t bytes) {
  if (bytes < kLeastBytes || bytes > UINT32_MAX - head_bytes_) return nullptr;
  // Whoever has a cell that is not in the list loses it.
  RecordRef& cell = cells_.emplace_back();
  cell.length = static_cast<uint32_t>(head_bytes_ + bytes);
  try {
    cell.data = store_.TakeLarge(cell.length);
  } catch (...) {
    cells_.pop_back();
    throw;
  }
  return const_cast<uint8_t*>(cell.data) + head_bytes_;
}

const RecordRef* RowRooms::Find(const uint8_t* bytes) const {
  const auto found = std::find_if(cells_.begin(), cells_.end(), [bytes](const RecordRef& cell) {
    return bytes >= cell.data && bytes < cell.data + cell.length;
  });
  return found == cells_.end() ? nullptr : &*found;
}

void RowRooms::Clear() {
  if (!cells_.empty()) store_.Release(cells_);
  cells_.clear();
}

}  // namespace penstock
