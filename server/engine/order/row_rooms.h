// Cells of the record store for large rows that others make (away_work_op.h): what is copied out of
// their hands is copied to where it stays, if a section hands it on.
//
//     ┌──────────────┬───────────────────────────────────────────┐
//     │ the element's│ what the row has of features whose sizes  │
//     │ own head     │ only the data tells, one after another    │
//     └──────────────┴───────────────────────────────────────────┘
//
// So such a row is an element's cell already (server/engine/read/element_cells.h), but for the
// head; or rows that it is cut into show parts of it (server/engine/read/row_block.h).
//
// Threads:  one at a time: whoever has the block of rows.
// Owns:     the cells, until Clear(). Who keeps one longer shares it (RecordStore::Share).
// Limits:   rows of kLeastBytes and more. Smaller ones are copied for less than a cell costs.
// Cost:     a cell of the store for each row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"

namespace penstock {

class RowRooms {
 public:
  // Above kLateRecordBytes.
  static constexpr uint64_t kLeastBytes = 16 << 10;
  // What a row has in its room begins at multiples of that, as in an element's cell.
  static constexpr uint64_t kAlignment = 16;

  explicit RowRooms(RecordStore& store) : store_(store) {}
  ~RowRooms() { Clear(); }
  RowRooms(const RowRooms&) = delete;
  RowRooms& operator=(const RowRooms&) = delete;

  // Of the rows to come, the first `features` features lie in rooms, behind `head_bytes`, a
  // multiple of kAlignment.
  void Begin(size_t features, uint32_t head_bytes) {
    features_ = features;
    head_bytes_ = head_bytes;
  }
  size_t features() const { return features_; }

  // Memory for all that a row has of these features, aligned to kAlignment, of which 64 bytes more
  // may be read; null where it is too little, or too much, for a room.
  uint8_t* Take(uint64_t bytes);

  bool empty() const { return cells_.empty(); }
  // The cell in which these bytes lie; null: in none.
  const RecordRef* Find(const uint8_t* bytes) const;

  void Clear();

 private:
  RecordStore& store_;
  size_t features_ = 0;
  uint32_t head_bytes_ = 0;
  RecordList cells_;
};

}  // namespace penstock
