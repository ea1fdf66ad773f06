// Frames of Zstandard (RFC 8878) that lie in memory, whose plain size is known, by libzstd.
//
// Threads:  any; a decompressor for each thread.
// Cost:     as libzstd's call for the whole; a look for a stop between two pieces of kPieceBytes.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace penstock {

// Whether the first frame may hold that many bytes: most frames say it themselves. For who asks for
// no memory where the two differ. DataLoss, with the reason alone.
absl::Status CheckZstdSize(absl::Span<const uint8_t> frames, uint64_t plain_bytes);

// Fills `plain` from all of the frames. DataLoss, with the reason alone, where they are damaged, or
// hold more or fewer bytes.
absl::Status UnpackZstdFrames(absl::Span<const uint8_t> frames, absl::Span<uint8_t> plain);

}  // namespace penstock
