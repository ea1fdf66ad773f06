// The bytes of an index file, which record_index.h draws, and the file itself.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "base/disk.h"
#include "base/file.h"
#include "io/record/record_index.h"

namespace penstock {

// What ties an index to its data file.
struct IndexStamp {
  uint64_t data_bytes = 0;
  FileVersion version;
  uint32_t first_crc = 0;
  uint32_t last_crc = 0;
};

absl::StatusOr<IndexStamp> StampOf(RandomAccessFile& file);

// Writes an index and nothing else to `file`.
absl::Status WriteIndex(WrittenFile& file, const RecordIndex& index, const IndexStamp& stamp);

// The index in the first `size` bytes of `file`, which it then owns, if they are one and belong to the data. `own_object`: of the index file.
// `copied` says that both were, as record_index.h tells.
absl::StatusOr<std::shared_ptr<const RecordIndex>> ParseIndex(MemoryBlock file, size_t size,
                                                              const IndexStamp& stamp,
                                                              uint64_t own_object, bool* copied);

}  // namespace penstock
