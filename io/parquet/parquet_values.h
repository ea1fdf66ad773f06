// The values of a page, decoded: numbers side by side, strings as where they lie.
//
// Source: Encodings.md of the Apache Parquet format.
//
// Threads:  any; no state. A dictionary is constant after construction.
// Cost:     numbers: a copy for PLAIN, some 1 ns each for the others; strings some 2 ns each,
//           without their bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "io/arrow/arrow_codec.h"
#include "io/parquet/parquet_body.h"
#include "io/parquet/parquet_pages.h"
#include "io/parquet/parquet_schema.h"

namespace penstock {

// A string, which lies in a page.
struct ParquetText {
  const uint8_t* data = nullptr;
  uint64_t size = 0;
};

// The bytes of a decoded value: of a number its dtype's, of a string a ParquetText's.
size_t ParquetSlotBytes(const ParquetColumn& column);

// The values of a dictionary page, decoded.
struct ParquetDictionary {
  uint32_t count = 0;
  const uint8_t* slots = nullptr;  // ParquetSlotBytes() each
  ArrowMemory decoded;             // that these lie in, where they are not stored as they are
  ArrowMemory body;                // that strings lie in, or numbers; none in a map

  uint64_t bytes() const { return sizeof(*this) + decoded.bytes + body.bytes; }
};

// `scratch`: for the time of the call. DataLoss with its address for what is none; Unimplemented
// for another encoding than PLAIN. REQUIRES: the column is read here, and the pages have a
// dictionary.
absl::StatusOr<std::shared_ptr<const ParquetDictionary>> ReadParquetDictionary(
    const ParquetInput& input, const ParquetColumn& column, ParquetCodec codec,
    const ParquetPages& pages, Arena& scratch);

// Decodes `count` values of a page, behind `skipped` ones, to `slots`. Strings lie in the bytes or
// in the dictionary then. DataLoss, without its address, for what is damaged; Unimplemented for an
// encoding that is not read here. `dictionary` may be null. REQUIRES: the column is read here.
absl::Status DecodeParquetValues(const ParquetColumn& column, ParquetEncoding encoding,
                                 absl::Span<const uint8_t> bytes,
                                 const ParquetDictionary* dictionary, uint64_t skipped,
                                 uint64_t count, uint8_t* slots);

}  // namespace penstock
