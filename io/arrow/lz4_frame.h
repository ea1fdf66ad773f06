// Unpacks LZ4 frames, which Arrow's buffers may be: Feather's default.
//
//   magic   FLG BD   size    sum    ┌─ blocks ────────────────────┐  end      sum
//   ┌──────┬───┬───┬───────┬──────┬──────┬───────────────┬───────┬──┬────────┬──────┐
//   │ 4    │ 1 │ 1 │ 0 or 8│ 1    │ size │ sequences, or │ sum   │… │ size 0 │ 0, 4 │
//   │      │   │   │       │      │ 4    │ plain bytes   │ 0, 4  │  │ 4      │      │
//   └──────┴───┴───┴───────┴──────┴──────┴───────────────┴───────┴──┴────────┴──────┘
//
// Of the LZ4 frame format 1.6.3 and block format:
// https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md and lz4_Block_format.md. Frames that
// need a dictionary are refused. A sum is xxHash's of 32 bits.
//
// Threads:  any; no state.
// Cost:     a byte of plain text some 0.3 to 1 ns, as copies are long or short.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/arrow/lz4_block.h"

namespace penstock {

// Fills `plain` from one whole frame. DataLoss, with the reason alone, for what is no such frame,
// is damaged, or holds more or fewer bytes.
absl::Status UnpackLz4Frame(absl::Span<const uint8_t> frame, absl::Span<uint8_t> plain);

}  // namespace penstock
