// The body of a page: read, its sum compared, unpacked, and cut into levels and values.
//
//   version 1   u32 bytes of levels, levels, values        all of it compressed together; no levels where nothing may be null
//   version 2   levels   values                            only the values are compressed
//
// Source: "Data Pages" of the Apache Parquet format, and PageHeader of parquet.thrift.
//
// Threads:  any; no state.
// Cost:     a read, or none where the file is mapped and the codec is UNCOMPRESSED; unpacking.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/arena.h"
#include "base/file.h"
#include "io/arrow/arrow_codec.h"
#include "io/parquet/parquet_pages.h"

namespace penstock {

// Where pages are read from.
struct ParquetInput {
  RandomAccessFile* file = nullptr;
  // All of the file in memory; null: it is read. The bytes may change while they are looked at; who
  // maps the file asks afterwards whether they were there.
  const uint8_t* map = nullptr;
};

struct ParquetBody {
  absl::Span<const uint8_t> levels;  // as runs; empty where the column has none
  absl::Span<const uint8_t> values;
  // That the values lie in, where they are to stay; none in a map.
  ArrowMemory memory;
};

// `has_levels`: the column may be null. `stays`: the values have memory of their own; else all is
// in `scratch`, or in the map. DataLoss, without its address, for what is damaged; Unimplemented
// for a codec or an encoding of levels that is not read here.
absl::StatusOr<ParquetBody> ReadParquetBody(const ParquetInput& input, ParquetCodec codec,
                                            const ParquetPage& page, bool has_levels, bool stays,
                                            Arena& scratch);

// What is taken of a scratch in its scope is free behind it.
class ScratchScope {
 public:
  explicit ScratchScope(Arena& scratch) : scratch_(scratch), mark_(scratch.GetMark()) {}
  ~ScratchScope() { scratch_.Rewind(mark_); }
  ScratchScope(const ScratchScope&) = delete;
  ScratchScope& operator=(const ScratchScope&) = delete;

 private:
  Arena& scratch_;
  const Arena::Mark mark_;
};

// The status with the address of the page.
absl::Status AtParquetPage(const absl::Status& status, const RandomAccessFile& file,
                           const ParquetPage& page);

}  // namespace penstock
