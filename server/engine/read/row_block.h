// The rows that one element was cut into, side by side: columns in a cell of the record store, and
// references that say which of its rows they are.
//
//     cell       RowBlock, its columns (base/column.h), and what these show
//     reference  data: the cell   length: the row's number in it   resolved: 1
//
// What lies in the cell of the element that the rows were made of stays there: the block owns that
// (RecordStore::Own). So numbers are copied once for all rows, and long strings not at all.
//
// A block stays until its last row is released. So blocks are made where no rows wait behind
// (Section::makes_blocks): in a shuffle's buffer few rows would hold many blocks.
//
// Threads:  constant once it is made, but for `open`, which is RecordStore's.
// Limits:   kMaxBytes of what is copied, and kMaxRowBytes a row.
// Cost:     a copy of each column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"
#include "server/engine/read/column_loader.h"
#include "server/engine/read/record.h"
#include "server/engine/read/record_store.h"

namespace penstock {

struct RowBlock {
  static constexpr uint64_t kMaxBytes = 1 << 20;
  // Of a row that is copied, on average: of a larger one its own cell costs less than memory that
  // waits for other rows.
  static constexpr uint64_t kMaxRowBytes = 2 << 10;
  // Fewer are not worth a block.
  static constexpr uint32_t kMinRows = 8;

  uint64_t path = 0;       // of the element that it was made of
  uint32_t first_row = 0;  // of the block, among those that the element made
  uint32_t rows = 0;
  uint32_t open = 0;       // owners of its rows
  uint32_t bytes = 0;      // of its cell
  uint64_t row_bytes = 0;  // that a row holds, on average
  // What it shows of another cell.
  const uint8_t* outside = nullptr;
  const uint8_t* outside_end = nullptr;
  size_t num_columns = 0;

  absl::Span<const Column> columns() const {
    return {reinterpret_cast<const Column*>(this + 1), num_columns};
  }

  // Whether a reference is of a row of a block.
  static bool HasRow(const RecordRef& reference) {
    return reference.in_cell() && reference.resolved != 0;
  }
  // REQUIRES: HasRow().
  static const RowBlock& Of(const RecordRef& reference) {
    return *reinterpret_cast<const RowBlock*>(reference.data);
  }
  static uint64_t PathOf(const RecordRef& reference);
  // Whether bytes that a row shows stay as long as the row does.
  static bool Holds(const RecordRef& reference, const RowBytes& bytes);
  // An address for each reference that no other one has at the time.
  static const uint8_t* KeyOf(const RecordRef& reference) {
    return HasRow(reference) ? reference.data + reference.length : reference.data;
  }

  // How many rows of the columns, from `first` on and `rows` at most, make up the next block;
  // absent where they make none. `outside`: the cell of the element that they were made of, or
  // nothing.
  static std::optional<uint32_t> RowsOfNext(const Signature& signature,
                                            absl::Span<const Column> columns, uint32_t first,
                                            uint32_t rows, absl::Span<const uint8_t> outside);
  // Makes it. Where it `shows` what is outside, the caller has it own that.
  static const RowBlock* Make(const Signature& signature, absl::Span<const Column> columns,
                              uint32_t first, uint32_t rows, absl::Span<const uint8_t> outside,
                              CellCache& cells);
  bool shows() const { return outside != nullptr; }

  // The features of rows that all are of blocks, from column `first_feature` on.
  static void Load(RowReferences rows, const Signature& features, size_t first_feature,
                   absl::Span<Column> out, Arena& arena);
};

// What the records that lie in cells hold.
uint64_t HeldBytes(const RecordList& records);

}  // namespace penstock
