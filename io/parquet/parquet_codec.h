// Unpacks the bodies of pages.
//
// Threads:  any; no state but a decompressor for each thread.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/parquet/parquet_footer.h"

namespace penstock {

// Whether packed bytes may hold so many plain ones, as far as they say or show it: for who asks for
// no memory where they do not. DataLoss with the reason alone; Unimplemented for another codec.
absl::Status CheckParquetSize(ParquetCodec codec, absl::Span<const uint8_t> packed,
                              uint64_t plain_bytes);

// Fills `plain`. A byte behind it may be written. DataLoss with the reason alone, for what is
// damaged, or holds more or fewer bytes. REQUIRES: CheckParquetSize().
absl::Status UnpackParquetBody(ParquetCodec codec, absl::Span<const uint8_t> packed,
                               absl::Span<uint8_t> plain);

}  // namespace penstock
