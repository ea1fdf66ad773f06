// Rows that were padded to the largest of their batch, padded on to those of another one.
//
//   piece of 2 rows, 3 wide     piece of 1 row, 2 wide          3 rows, 3 wide
//   a b ·  c d e                f g                       ►     a b ·  c d e  f g ·
//
// Threads:  any; no state.
// Limits:   no exception but std::bad_alloc.
// Cost:     one copy of all rows, and none where all pieces have the shape.
#pragma once

#include <cstdint>
#include <vector>

#include "client/c/aligned_bytes.h"
#include "ring/layout.h"

namespace penstock_client {

// The shape of some rows that lie behind those of the piece before.
using PaddedPiece = std::vector<int64_t>;

// Lays the pieces, whose elements lie one after another in `values` (of strings the bytes, and
// where each begins and ends in `offsets`), as rows of `shape`, which is no smaller than any of
// them; shape[0] is the number of all rows. False where there is no memory; `inside` becomes false
// where an offset leads out of the values.
bool PadTo(const std::vector<int64_t>& shape, const penstock::ring::TensorEntry& entry,
           const std::vector<PaddedPiece>& pieces, AlignedBytes* values, AlignedBytes* offsets,
           bool* inside);

}  // namespace penstock_client
