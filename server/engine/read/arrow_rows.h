// Which rows of the files are the elements of a source of Arrow files, and in which order:
// stretches of rows and, of these, those whose numbers stand in a list or in an Arrow file.
//
// Threads:  constant once the plan is made; safe from any thread.
// Owns:     the list, or the map of the file of numbers; where it cannot be mapped, its numbers.
// Limits:   kMaxArrowRowFileBytes of a file that cannot be mapped.
// Cost:     a binary search among the stretches and one among the batches of the file, where there
//           are several.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/file/mapped_file.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/read/file_table.h"

namespace penstock {

inline constexpr uint64_t kMaxArrowRowFileBytes = uint64_t{1} << 30;

class ArrowRows {
 public:
  // Of `num_rows` rows of all files. Reads the metadata of `row_file`, "" for none, whose entry in
  // the manifest becomes `*entry`. InvalidArgument for rows that are not there.
  static absl::StatusOr<std::unique_ptr<ArrowRows>> Make(const v1::ArrowRows& rows,
                                                         const std::string& row_file,
                                                         uint64_t num_rows, FileSystem& files,
                                                         FileEntry* entry);

  // How many elements there are.
  uint64_t size() const { return size_; }
  // Whether element i is row i.
  bool is_all() const { return stretches_.empty() && !has_list_; }

  // The row of an element. DataLoss with its address where the file of numbers names none.
  // REQUIRES: element < size().
  absl::StatusOr<uint64_t> RowOf(uint64_t element) const;
  // The same where that is not told: row 0 then.
  uint64_t RowOrFirst(uint64_t element) const;
  // Whether all numbers that were read were the file's.
  absl::Status CheckFile() const;

 private:
  struct Stretch {
    uint64_t start = 0;
    uint64_t end = 0;  // of this one and those before it, in rows of stretches
  };
  // Numbers that lie side by side.
  struct Piece {
    const uint8_t* numbers = nullptr;
    uint64_t end = 0;  // of this one and those before it
  };

  absl::Status ReadStretches(const v1::ArrowRows& rows, uint64_t num_rows);
  absl::Status ReadList(const v1::ArrowRows& rows);
  absl::Status ReadFile(const std::string& path, FileSystem& files, FileEntry* entry);
  // Element `element` of the list.
  uint64_t Listed(uint64_t element) const;
  uint64_t InStretches(uint64_t number) const;

  uint64_t num_rows_ = 0;  // of the stretches, or of all files
  uint64_t size_ = 0;
  std::vector<Stretch> stretches_;  // empty: one of all rows
  bool has_list_ = false;
  std::vector<int64_t> list_;
  std::string path_;  // of the file of numbers
  std::vector<Piece> pieces_;
  std::unique_ptr<MappedFile> map_;
  MemoryBlock memory_;
};

}  // namespace penstock
