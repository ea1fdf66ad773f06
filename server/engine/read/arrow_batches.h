// The record batches of the Arrow files of a source: how many rows each has, and where the buffers
// of the columns lie that are asked for.
//
//   row ─► batch ─► place of each level (io/arrow/arrow_column.h) ─► bitmap, offsets, values
//
// Threads:  constant once the plan is made.
// Limits:   kMaxArrowPlaces places, fewer than 2^62 rows.
// Cost:     72 bytes a batch and 56 a level of a column in it. Finding the batch of a row: a binary
//           search.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "io/arrow/arrow_column.h"
#include "io/arrow/arrow_file.h"

namespace penstock {

inline constexpr uint64_t kMaxArrowPlaces = uint64_t{1} << 23;

// Which buffer of a level.
enum class ArrowPart : uint8_t { kBitmap = 0, kOffsets = 1, kValues = 2 };
inline constexpr size_t kArrowParts = 3;

inline uint64_t BitmapBytes(uint64_t bits) { return bits / 8 + (bits % 8 != 0); }

class ArrowBatches {
 public:
  struct Batch {
    uint64_t first_row = 0;          // over all files
    uint64_t first_row_of_file = 0;  // in its file
    uint64_t rows = 0;
    uint64_t offset = 0;        // of its message in the file
    uint64_t first_place = 0;   // of its first level
    uint64_t dictionaries = 0;  // which ones hold for it
    uint32_t file = 0;          // of the source
    uint32_t number = 0;        // in its file
    ArrowCodec codec = ArrowCodec::kNone;
  };
  // One level of a column in one batch. An absent part has no bytes: the bitmap where nothing is
  // null.
  struct Place {
    uint64_t length = 0;
    ArrowExtent parts[kArrowParts];
  };
  // The parts of a dictionary, one after another: batches of one place each.
  struct Dictionary {
    std::vector<uint32_t> parts;  // in parts()
    std::vector<uint64_t> ends;   // of each, in values
    uint64_t size() const { return ends.empty() ? 0 : ends.back(); }
  };

  // Of columns whose levels are numbered through. `columns` outlives the building.
  explicit ArrowBatches(size_t num_columns) : first_levels_(num_columns) {}

  // Those of one more file, whose columns are like those of the others. `*damage` is what was left
  // out. Errors have their address.
  absl::Status AddFile(ArrowFile& file, absl::Span<const ArrowColumn> columns,
                       std::vector<Damage>* damage);

  // A file that is left out.
  void AddNothing() { file_ends_.push_back(num_rows()); }

  uint64_t num_rows() const { return ends_.empty() ? 0 : ends_.back(); }
  uint64_t num_rows_of_file(uint32_t file) const {
    return file_ends_[file] - (file == 0 ? 0 : file_ends_[file - 1]);
  }
  uint32_t num_files() const { return static_cast<uint32_t>(file_ends_.size()); }
  const std::vector<Batch>& batches() const { return batches_; }
  // The parts of all dictionaries.
  const std::vector<Batch>& parts() const { return parts_; }

  // The batch of a row. REQUIRES: row < num_rows().
  uint32_t BatchOf(uint64_t row) const;
  // Of a row of a file.
  uint32_t BatchOf(uint32_t file, uint64_t row) const {
    return BatchOf(row + (file == 0 ? 0 : file_ends_[file - 1]));
  }

  const Place& place(uint64_t number) const { return places_[number]; }
  // The number of a column's first level among a batch's.
  size_t first_level(size_t column) const { return first_levels_[column]; }
  // The dictionary of a column in a batch. REQUIRES: the column has one.
  const Dictionary& dictionary(const Batch& batch, size_t column) const {
    return dictionaries_[batch.dictionaries + column];
  }

 private:
  class FileBuilder;

  std::vector<size_t> first_levels_;
  std::vector<Batch> batches_;
  std::vector<Batch> parts_;
  std::vector<uint64_t> ends_;       // of each batch, in rows
  std::vector<uint64_t> file_ends_;  // of each file
  std::vector<Place> places_;
  std::vector<Dictionary> dictionaries_;  // one a column, for each set of them that holds
  uint64_t dictionary_parts_ = 0;         // in all of these
};

}  // namespace penstock
