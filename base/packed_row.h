// Rows of a feature that are more than their values in C order (RowForm in signature.h), as they
// lie in a column.
//
//   kPackedRagged   for each ragged axis, the outermost first:  int64 rows, int64 row_splits[rows + 1];
//                   then the values
//   kPackedSparse   int64 count, int64 sizes[axes] of the dense tensor, int64 indices[count][axes],
//                   then the values
//
// Values of numbers lie side by side; strings are the sizes of all of them, uint32, and then their
// bytes. A row of kPackedRagged has as many ragged axes as its shape has unknown ones behind the
// first.
//
// Threads:  any; no state.
// Owns:     nothing; what Read…() shows points into the row.
// Cost:     a pass over the row splits or the sizes of strings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "base/arena.h"
#include "base/column.h"
#include "base/signature.h"

namespace penstock {

// Values side by side: numbers, or strings.
struct PackedValues {
  const uint8_t* bytes = nullptr;
  size_t size = 0;  // of bytes
  // Strings: the size of each; may be at any address.
  const uint8_t* string_sizes = nullptr;
  size_t count = 0;  // of values

  uint32_t string_size(size_t i) const {
    uint32_t size = 0;
    __builtin_memcpy(&size, string_sizes + i * sizeof(size), sizeof(size));
    return size;
  }
};

// The ragged axes of a row of a kPackedRagged type.
size_t PackedRaggedRank(const Shape& shape);

// A row that holds these values, whose memory is the arena's. `splits`: of each ragged axis, one
// more than it has rows.
RowBytes PackRagged(absl::Span<const std::vector<int64_t>> splits, const PackedValues& values,
                    Arena& arena);
// `sizes`: of the dense tensor; `indices`: as many for each value.
RowBytes PackSparse(absl::Span<const int64_t> sizes, absl::Span<const int64_t> indices,
                    const PackedValues& values, Arena& arena);

// Whether bytes that come from a file make up a row of a packed type.
bool IsPackedRow(const TensorType& type, const uint8_t* data, size_t size);

struct RaggedRow {
  std::vector<absl::Span<const int64_t>> splits;
  PackedValues values;
};
struct SparseRow {
  absl::Span<const int64_t> sizes;
  absl::Span<const int64_t> indices;
  PackedValues values;
};
// REQUIRES: a row of such a type. Row splits and indices are aligned as the row is: to 8 bytes.
RaggedRow ReadRaggedRow(const TensorType& type, const RowBytes& row);
SparseRow ReadSparseRow(const TensorType& type, const RowBytes& row);
// The values of a row that is not packed, of as many elements. REQUIRES: it has an axis.
PackedValues ReadDenseRow(DType dtype, size_t count, const RowBytes& row);

}  // namespace penstock
