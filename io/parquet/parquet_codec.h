// Unpacks the bodies of pages.
//
// Threads:  any; no state but a decompressor for each thread.
// Limits:   the caller's, of plain bytes.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrow/arrow_codec.h"
#include "io/parquet/parquet_footer.h"

namespace penstock {

// The plain bytes, which are so many, in memory with 64 bytes behind them that may be read. No
// memory is taken where the packed bytes say, or show, that they hold others. DataLoss, without its
// address, for what is damaged; Unimplemented for another codec. REQUIRES: `codec` is not
// kUncompressed.
absl::StatusOr<ArrowMemory> UnpackParquetBody(ParquetCodec codec, absl::Span<const uint8_t> packed,
                                              uint64_t plain_bytes);

}  // namespace penstock
