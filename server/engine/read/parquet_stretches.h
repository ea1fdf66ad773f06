// The rows of the Parquet files of a source, in stretches that are decoded at once: row groups, or
// parts of large ones.
//
//   row ─► stretch ─► file, row group, rows in it ─► pages of each column
//
// Threads:  constant once the plan is made.
// Limits:   kMaxParquetStretches stretches, fewer than 2^62 rows.
// Cost:     48 bytes a stretch, and the footers. Finding the stretch of a row: a binary search.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/parquet/parquet_footer.h"

namespace penstock {

inline constexpr uint64_t kMaxParquetStretches = uint64_t{1} << 23;
// Decoded values of a stretch, of all columns together, about.
inline constexpr uint64_t kParquetStretchBytes = uint64_t{32} << 20;

class ParquetStretches {
 public:
  struct Stretch {
    uint64_t first_row = 0;           // over all files
    uint64_t first_row_of_file = 0;   // in its file
    uint64_t first_row_of_group = 0;  // in its row group
    uint64_t rows = 0;
    uint64_t group = 0;    // over all files
    uint32_t file = 0;     // of the source
    uint32_t in_file = 0;  // its row group, in the file
  };

  // `stretch_bytes`: a test makes it small.
  explicit ParquetStretches(uint64_t stretch_bytes = kParquetStretchBytes)
      : stretch_bytes_(stretch_bytes) {}

  // Those of one more file; `columns` are the numbers of the features' columns there.
  absl::Status AddFile(ParquetFooter footer, std::vector<uint32_t> columns);

  uint64_t num_rows() const { return ends_.empty() ? 0 : ends_.back(); }
  uint64_t num_rows_of_file(uint32_t file) const { return files_[file].footer.num_rows(); }
  uint32_t num_files() const { return static_cast<uint32_t>(files_.size()); }
  const std::vector<Stretch>& stretches() const { return stretches_; }

  // The stretch of a row. REQUIRES: row < num_rows().
  uint32_t StretchOf(uint64_t row) const;
  // Of a row of a file.
  uint32_t StretchOf(uint32_t file, uint64_t row) const {
    return StretchOf(row + files_[file].first_row);
  }

  const ParquetColumn& column(const Stretch& stretch, size_t feature) const {
    const File& file = files_[stretch.file];
    return file.footer.columns()[file.columns[feature]];
  }
  const ParquetChunk& chunk(const Stretch& stretch, size_t feature) const {
    const File& file = files_[stretch.file];
    return file.footer.chunk(stretch.in_file, file.columns[feature]);
  }

 private:
  struct File {
    ParquetFooter footer;
    std::vector<uint32_t> columns;
    uint64_t first_row = 0;
  };

  const uint64_t stretch_bytes_;
  std::vector<File> files_;
  std::vector<Stretch> stretches_;
  std::vector<uint64_t> ends_;  // of each stretch, in rows
  uint64_t num_groups_ = 0;
};

}  // namespace penstock
