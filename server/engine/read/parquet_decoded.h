// Decoded stretches of Parquet files, all features of one together: those that were asked for last
// stay.
//
// Threads:  safe from any thread.
// Owns:     the maps of the files, and up to kKeptBytes of decoded values and kKeptChunkBytes of
//           tables of pages and dictionaries, besides those that somebody looks at.
// Cost:     a lock; for what is not there a read, unpacking and decoding. Who comes meanwhile
//           waits.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/patient_once.h"
#include "io/file/mapped_file.h"
#include "io/parquet/parquet_column.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/kept_once.h"
#include "server/engine/read/parquet_stretches.h"

namespace penstock {

class ParquetDecoded {
 public:
  static constexpr uint64_t kKeptBytes = uint64_t{256} << 20;
  static constexpr uint64_t kKeptChunkBytes = uint64_t{64} << 20;

  // Values, or what is wrong with their pages. That is kept, too: of all rows of a damaged stretch
  // it is told once each.
  struct Column {
    absl::Status damage;
    ParquetValues values;
  };
  struct Rows {
    // One a feature, up to the one that an error of another kind is of.
    std::vector<Column> columns;
    uint64_t bytes() const {
      uint64_t sum = sizeof(*this);
      for (const Column& column : columns) sum += sizeof(column) + column.values.bytes();
      return sum;
    }
  };
  using Held = KeptOnce<Rows>::Held;

  // `fills`: what stands for a null of each feature (ReadParquetValues). They, and the stretches,
  // outlive it. `first_file`: the number of the source's first file in the manifest.
  ParquetDecoded(const ParquetStretches& stretches, std::vector<std::string> fills,
                 uint32_t first_file)
      : stretches_(stretches),
        fills_(std::move(fills)),
        first_file_(first_file),
        maps_(stretches.num_files()),
        rows_(kKeptBytes),
        chunks_(kKeptChunkBytes) {}

  // A stretch; `scratch` for the time of the call. An error of another kind is in its status, and
  // the number of columns is that of the feature.
  std::shared_ptr<const Held> Get(uint32_t stretch, FileTable& files, Arena& scratch) const;

  // Whether all that was looked at in the map of a file was there.
  absl::Status CheckMap(uint32_t file) const;

 private:
  struct Chunk {
    ParquetPages pages;
    std::shared_ptr<const ParquetDictionary> dictionary;
  };
  struct Mapping {
    PatientOnce once;
    std::unique_ptr<MappedFile> map;  // constant behind once; null: there is none
  };

  absl::Status Decode(const ParquetStretches::Stretch& stretch, size_t feature, FileTable& files,
                      Arena& scratch, ParquetValues* values) const;
  absl::Status ReadChunk(const ParquetStretches::Stretch& stretch, size_t feature,
                         const ParquetInput& input, Arena& scratch, Chunk* chunk) const;

  const ParquetStretches& stretches_;
  const std::vector<std::string> fills_;
  const uint32_t first_file_;
  mutable std::vector<Mapping> maps_;  // one a file
  mutable KeptOnce<Rows> rows_;
  mutable KeptOnce<Chunk> chunks_;
};

}  // namespace penstock
