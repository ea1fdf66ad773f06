// Reads TFRecord files: finds the frames, verifies both checksums.
//
//   0         8                12               12 + length
//   ┌─────────┬────────────────┬────────────────┬───────────────────────┐
//   │ length  │ checksum of    │ data           │ checksum of the data  │
//   │ u64     │ those 8 bytes  │ length bytes   │ u32                   │
//   └─────────┴────────────────┴────────────────┴───────────────────────┘
//
// Numbers are little-endian, checksums masked CRC-32C (io/file/crc32c.h).
//
// Small records are read in chunks and lie in the chunk's memory until it is filled again. A record
// longer than kLateRecordBytes is only located: whoever handles it reads it later (ReadRecord), so
// that waiting in a shuffle buffer costs no memory.
//
// Threads:  functions without state; a chunk belongs to one thread, a file may be read by several.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/arena.h"
#include "base/file.h"
#include "io/record/record_chunk.h"

namespace penstock {

// Fills `chunk` with the records from `offset` on: as many as fit a chunk (one or more), or the
// late ones up to a limit. Errors are put into the chunk, behind the records that precede them.
//
// With OnDamage::kSkipRecord damage is no error: it is listed in the chunk, which ends behind it,
// and late records are verified too, since a skip is part of the order; such a chunk may have no
// records and not be the last. Read errors, and a file that shrinks meanwhile, are errors all the
// same.
//
// Where damaged data is left to whoever handles the record, such a record is a late one.
enum class DamagedData : uint8_t { kEndsChunk, kIsLeft };
void ReadChunk(RandomAccessFile& file, uint64_t offset, bool expect_late, RecordChunk* chunk,
               OnDamage on_damage = OnDamage::kFail,
               DamagedData damaged_data = DamagedData::kEndsChunk);

// Reads and verifies one late record into memory of `arena`.
absl::StatusOr<const uint8_t*> ReadRecord(RandomAccessFile& file, uint64_t offset, uint32_t length,
                                          Arena& arena);

// The ordinal in its file of the record at `offset`, found by walking the headers: for messages.
uint64_t RecordOrdinal(RandomAccessFile& file, uint64_t offset);

// `status` with its address appended: "(chess-003.tfrecord, record 17, offset 4093)".
absl::Status WithAddress(const absl::Status& status, RandomAccessFile& file, uint64_t offset);

}  // namespace penstock
