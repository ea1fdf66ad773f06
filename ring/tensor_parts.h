// Where the parts of a tensor lie in one slot: what a reader believes of the tables of a segment,
// after it has checked them.
//
// Threads:  any; no state.
// Owns:     nothing; a TensorParts points into the slot.
// Limits:   what is found lies inside of the slot, with 64 bytes behind it. String offsets and row
//           splits are checked at both ends only: whoever follows one from the middle checks it.
// Cost:     some twenty loads a tensor, whatever its size.
#pragma once

#include <cstdint>

#include "ring/layout.h"

namespace penstock::ring {

struct TensorParts {
  const uint8_t* values = nullptr;  // of strings: their bytes
  uint64_t values_bytes = 0;
  // Strings only: element i is values[offsets[i] … offsets[i + 1]).
  const int64_t* offsets = nullptr;
  uint64_t num_offsets = 0;
  // Ragged only, the outermost axis first.
  const int64_t* splits[kMaxRaggedRank] = {};
  uint64_t num_splits[kMaxRaggedRank] = {};
  // Sparse only: for each value its place, a number for each axis. They may lead anywhere.
  const int64_t* indices = nullptr;
  uint64_t num_indices = 0;      // of all values together
  int64_t shape[kMaxDims] = {};  // of this batch; -1 for a ragged axis; sparse: of the dense tensor
};

// Whether a tensor's entry may be believed: null, or what is wrong with it. A fixed tensor lies
// inside of a slot of `slot_bytes` bytes then.
const char* CheckEntry(const TensorEntry& entry, uint64_t slot_bytes);

// Finds the parts of a tensor in a slot that holds `rows` rows: null, or what is wrong with them.
// `extent` is the caller's own copy. REQUIRES: CheckEntry() found nothing.
const char* FindParts(const TensorEntry& entry, const TensorExtent& extent, uint32_t rows,
                      const uint8_t* slot, uint64_t slot_bytes, TensorParts* out);

}  // namespace penstock::ring
