// The bytes of an index file, and the file itself.
//
//   0        8         12       16          24         32        40          44          48
//   ┌────────┬─────────┬────────┬───────────┬──────────┬─────────┬───────────┬───────────┬─────────┐
//   │ magic  │ version │ flags  │ data file │ its      │ its     │ CRC of    │ CRC of    │ number  │
//   │ PENSTIX│ u32     │ u32    │ bytes u64 │ modified │ object  │ its first │ its last  │ of      │
//   │ \n     │         │        │           │ ns i64   │ u64     │ 4 KiB u32 │ 4 KiB u32 │ records │
//   └────────┴─────────┴────────┴───────────┴──────────┴─────────┴───────────┴───────────┴─────────┘
//   56        number of damages u64 │ 64 the data's holder u64, 72 changed ns i64 │ 80 the index's own object u64
//   88        hash of RecordAccess::IndexKey() u64 │ 96 the last record's end u64 │ 104 number of wide offsets u64 │ 112 zeros, 16 bytes
//   128       lines of 28 records each, 64 bytes a line (record_offsets.h draws one)
//   then      wide offsets, u64 each │ damages: offset u64, length u64, reason u64, each │ CRC of all before, u32
//
// Numbers are little-endian, checksums CRC-32C. Flag 1: the data was verified as well, as far as
// its format can.
//
// Of older versions, which know TFRecords alone, both are read. Version 2 ends its head at 88, and
// has the damages and then the offsets of all records there, u64 each. Version 1 lacks what stands
// from 64 on as well; it is read as an index that was copied.
//
// Threads:  functions without state; the file belongs to one thread meanwhile.
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

// It reads so many bytes at each end of the file.
inline constexpr size_t kStampEndBytes = 4096;

absl::StatusOr<IndexStamp> StampOf(RandomAccessFile& file);

// Writes an index and nothing else to `file`.
absl::Status WriteIndex(WrittenFile& file, const RecordIndex& index, const RecordAccess& access,
                        const IndexStamp& stamp);

// Bytes that no index of a data file of that size exceeds.
uint64_t LargestIndex(const RecordShape& shape, uint64_t data_bytes);

// The index in the first `size` bytes of `file`, which it then owns, if they are one and belong to
// the format and the data. `own_object`: of the index file. `copied` says that both were, as
// record_index.h tells.
absl::StatusOr<std::shared_ptr<const RecordIndex>> ParseIndex(MemoryBlock file, size_t size,
                                                              const RecordAccess& access,
                                                              const IndexStamp& stamp,
                                                              uint64_t own_object, bool* copied);

}  // namespace penstock
