// How rows of columns lie on a tray: a sheet.
//
//     feature of fixed size    rows × its bytes
//     any other                rows × {offset, bytes} (uint64), then rows × axes sizes (int64)
//     data                     what those offsets say, from the tray's beginning
//
// Each part begins at a multiple of 64 bytes. A row that is a string is its bytes; one of several
// strings is their sizes (uint32) and then their bytes, as base/column.h has it.
//
// What a worker has written is copied once, and checked in the copy, so that it may change at any
// time.
//
// Threads:  constant after construction.
// Cost:     one copy.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/lone_row_room.h"
#include "base/signature.h"

namespace penstock::python {

class SheetForm {
 public:
  // REQUIRES: no feature is packed.
  explicit SheetForm(Signature features);

  const Signature& features() const { return features_; }

  // The bytes that Lay() writes for rows `first` to `first + rows - 1` of the columns.
  uint64_t Measure(absl::Span<const Column> columns, uint32_t first, uint32_t rows) const;
  void Lay(absl::Span<const Column> columns, uint32_t first, uint32_t rows, uint8_t* to) const;

  // Columns of `rows` rows for Take(): in memory of the arena, but for features of fixed size whose
  // data is set: then true.
  bool Prepare(uint32_t rows, absl::Span<Column> columns, Arena* arena) const;
  // Copies the first `made` rows of a sheet of `rows` rows and `bytes` into rows `first` to
  // `first + made - 1` of prepared columns.
  // `for_others`: large rows of fixed size are read by other processors next. `room`: for a large
  // row of any other size; may be null.
  // Internal: it is none, as a worker that is sound never writes it.
  absl::Status Take(const uint8_t* from, uint64_t bytes, uint32_t first, uint32_t made,
                    uint32_t rows, absl::Span<Column> columns, Arena* arena,
                    bool for_others = false, LoneRowRoom* room = nullptr) const;

 private:
  struct Part {
    uint64_t row_bytes = 0;  // 0: not fixed
    bool is_fixed = false;
    bool has_dims = false;  // its columns say each row's sizes
  };
  struct Place {
    uint64_t values = 0;
    uint64_t dims = 0;
  };
  // Where each feature of so many rows begins; `*data`: behind them all.
  std::vector<Place> Places(uint32_t rows, uint64_t* data) const;
  absl::Status TakeRow(size_t feature, const uint8_t* from, uint64_t bytes, const uint64_t* place,
                       const int64_t* dims, RowBytes* to, Arena* arena, LoneRowRoom* room) const;

  const Signature features_;
  std::vector<Part> parts_;
};

}  // namespace penstock::python
