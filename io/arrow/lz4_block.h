// Unpacks blocks of LZ4: sequences of plain bytes and of repetitions of what came out before.
//
// Of the LZ4 block format: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md.
//
// Threads:  any; no state.
// Cost:     a byte of plain text some 0.3 to 1 ns, as copies are long or short; a look for a stop
//           in kPieceBytes of it.
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

// No block or frame holds more plain bytes for each of its own.
inline constexpr uint64_t kMaxLz4Ratio = 255;

// Unpacks a block to `out`, in front of `end`; repetitions begin at `first` or behind. The end of
// what was written, or null where the block is no sequences, or holds more.
uint8_t* UnpackLz4Block(absl::Span<const uint8_t> block, const uint8_t* first, uint8_t* out,
                        const uint8_t* end);

}  // namespace penstock
