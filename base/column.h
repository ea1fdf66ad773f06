// One feature for a block of rows, as work ops and programs see it. A view: it owns nothing.
//
// Threads:  a view is its holder's; what it shows is constant or in the hands of one task.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock {

// The bytes of one row that lie wherever they were read.
struct RowBytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

// Either dense (row r at data + r * row_bytes) or scattered (row r is rows[r]; `data` is null).
// Scattered rows may be loaded from in whole vectors: at least 64 readable bytes follow each.
//
// Of a feature with axes that only the data tells, every row has a shape of its own: the column is
// scattered, and row r's sizes are dims[r * ndim] to dims[r * ndim + ndim - 1], outermost first.
// A row of strings, where it is no scalar, is the sizes of all of them (uint32) and then their
// bytes, one string after another.
struct Column {
  uint8_t* data = nullptr;
  size_t row_bytes = 0;
  const RowBytes* rows = nullptr;
  const int64_t* dims = nullptr;  // null where the shape is known

  const uint8_t* row(size_t r) const { return rows ? rows[r].data : data + r * row_bytes; }
  size_t row_size(size_t r) const { return rows ? rows[r].size : row_bytes; }
};

// The result of work on a block: fine, or the lowest failing row and what was wrong with it.
struct RowStatus {
  absl::Status status;
  int row = 0;  // meaningful only when !status.ok()

  bool ok() const { return status.ok(); }
};

}  // namespace penstock
