// Unpacks blocks of Snappy, without its frames: what Parquet's pages are compressed by if nobody
// chooses.
//
//   varint plain bytes   elements …
//   element   low bits 00: so many bytes that follow     01, 10, 11: a repetition of what came out before, with a distance of 11, 16 or 32 bits
//
// Source: "Snappy compressed format description" (format_description.txt of google/snappy).
//
// Threads:  any; no state.
// Cost:     a byte of plain text some 0.3 to 1 ns, as copies are long or short; a look for a stop
//           in kPieceBytes of it.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace penstock {

// Fills `plain` from one whole block. DataLoss, with the reason alone, for what is no such block,
// or holds more or fewer bytes.
absl::Status UnpackSnappyBlock(absl::Span<const uint8_t> block, absl::Span<uint8_t> plain);

// Whether it may hold that many bytes, as it says itself. For who asks for no memory where it does
// not.
absl::Status CheckSnappySize(absl::Span<const uint8_t> block, uint64_t plain_bytes);

}  // namespace penstock
