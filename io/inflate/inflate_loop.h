// The inner loop of inflating: symbols of one block of deflate, as long as neither end is near.
//
// Threads:  any; it has no state.
// Cost:     190 ns for a record of 245 bytes of chess, 57 symbols, where ISA-L takes 280 (Zen 4;
//           ../../bench/inflate.cc).
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "io/inflate/inflate_table.h"

namespace penstock {

// Between input and output.
struct InflateCursor {
  const uint8_t* in;
  uint64_t bits;      // taken from the input and not used yet, the next one lowest
  uint32_t num_bits;  // at most 56; those above are zero
  uint8_t* out;
};

// From where on the loop leaves the rest to a more careful one.
inline constexpr size_t kInflateInputMargin = 32;
inline constexpr size_t kInflateOutputMargin = 384;

// Inflates whole symbols, up to some byte within the margins before `in_end` and `out_end`, or in
// front of a symbol that it leaves alone: the end of the block, one that no code stands for, or a
// distance that reaches to before `history`. On return num_bits is below 8. Bytes between the
// cursor's `out` and out_end may have been written.
// REQUIRES: history <= out, and bytes in between.
using InflateSymbols = void (*)(const InflateTable& table, const uint8_t* in_end,
                                const uint8_t* history, const uint8_t* out_end,
                                InflateCursor* cursor);

// Those that this processor has, the fastest first. All do the same.
absl::Span<const InflateSymbols> InflateSymbolsVariants();

}  // namespace penstock
