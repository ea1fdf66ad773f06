// Maps of files that are read again and again: one of each file, for all pipelines of a process, up
// to a number of bytes.
//
// Threads:  all methods from any thread.
// Owns:     none: a map is there as long as somebody has it, also behind this object.
// Limits:   kMaxFiles, besides the bytes: who reads records at random needs maps as well
//           (kMaxMappedFiles).
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/file.h"
#include "io/file/mapped_file.h"

namespace penstock {

class SharedMaps {
 public:
  static constexpr int kMaxFiles = 2048;
  using Map = std::shared_ptr<const MappedFile>;

  // What all maps that somebody has are of.
  struct Use {
    int files = 0;
    uint64_t bytes = 0;
  };

  explicit SharedMaps(uint64_t max_bytes);
  ~SharedMaps();
  SharedMaps(const SharedMaps&) = delete;
  SharedMaps& operator=(const SharedMaps&) = delete;

  // Of the file that is open: one that somebody has already, or a new one. ResourceExhausted: there
  // is no room for it now; any other error: there is no map of it to be had.
  absl::StatusOr<Map> Get(const RandomAccessFile& file);

  Use InUse() const;

 private:
  struct Table;
  const std::shared_ptr<Table> table_;
};

}  // namespace penstock
