// Which values of a page are null: the definition levels of a column that is not nested, as runs of
// bits.
//
// Source: "Nested Encoding" of the Apache Parquet format: the level is 1 where there is a value.
//
// Threads:  one thread.
// Cost:     some 2 ns a value that stands in no run; nothing where none is null.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/arrow/arrow_codec.h"

namespace penstock {

// What is null among the rows that are decoded.
class ParquetValidity {
 public:
  // Of so many rows; no page is in it yet.
  explicit ParquetValidity(uint64_t rows) : rows_(rows) {}

  // Takes the levels of `count` rows from the `first` one of a page on, behind those that were
  // taken before. `*skipped` is how many values stand in front of these, `*values` how many there
  // are. DataLoss, without its address, for what are no levels of so many rows.
  absl::Status Take(absl::Span<const uint8_t> levels, uint64_t first, uint64_t count,
                    uint64_t* skipped, uint64_t* values);
  // The same of a page without levels: nothing is null.
  void TakeAll(uint64_t count);

  uint64_t nulls() const { return nulls_; }
  // A bit for each row, the lowest first; no bytes where nothing is null.
  ArrowMemory& bits() { return bits_; }
  // REQUIRES: something is null.
  bool IsThere(uint64_t row) const { return (bits_.block.get()[row / 8] >> (row % 8) & 1) != 0; }

 private:
  void Add(bool is_there, uint64_t count);

  const uint64_t rows_;
  uint64_t done_ = 0;
  uint64_t nulls_ = 0;
  ArrowMemory bits_;
};

}  // namespace penstock
