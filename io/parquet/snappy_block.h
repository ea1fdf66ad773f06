// Unpacks blocks of Snappy, without its frames: what Parquet's pages are compressed by if nobody
// chooses. By libsnappy, which is given the block piece by piece, so that a stop is seen.
//
// Source: "Snappy compressed format description" (format_description.txt of google/snappy).
//
// Threads:  any; no state.
// Cost:     libsnappy's; a look for a stop in each 64 KiB of the block.
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
