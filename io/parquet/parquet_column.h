// A stretch of rows of one column in a row group, decoded.
//
//   pages of the chunk ─► those that the rows are in ─► values, in slots of one size, and which are null
//
// Threads:  any; no state.
// Limits:   kMaxParquetSlotBytes of slots.
// Cost:     every page that one of the rows is in is unpacked whole.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "io/parquet/parquet_values.h"

namespace penstock {

inline constexpr uint64_t kMaxParquetSlotBytes = uint64_t{1} << 30;

struct ParquetValues {
  uint64_t rows = 0;
  uint64_t nulls = 0;
  // ParquetSlotBytes() each: a number, or a ParquetText.
  ArrowMemory slots;
  // A bit for each row that is there, the lowest first; no bytes where nothing is null.
  ArrowMemory validity;
  // What strings lie in, unless it is the map.
  std::vector<ArrowMemory> bodies;
  std::shared_ptr<const ParquetDictionary> dictionary;

  const ParquetText* texts() const {
    return reinterpret_cast<const ParquetText*>(slots.block.get());
  }
  // What it holds in memory, without the dictionary.
  uint64_t bytes() const;
};

// The rows from `first` on, `count` of them. What is null becomes `fill`: bytes of a slot, or, of
// strings, those of one string, which outlives the values; empty: zeros, or the empty string.
// `scratch`: for the time of the call. Errors have their address. REQUIRES: the column is read here
// (ParquetFooter::CheckColumn), the pages are its chunk's, `dictionary` is theirs, if they have
// one, and the rows are among them.
absl::StatusOr<ParquetValues> ReadParquetValues(const ParquetInput& input,
                                                const ParquetColumn& column, ParquetCodec codec,
                                                const ParquetPages& pages,
                                                std::shared_ptr<const ParquetDictionary> dictionary,
                                                uint64_t first, uint64_t count,
                                                absl::string_view fill, Arena& scratch);

}  // namespace penstock
