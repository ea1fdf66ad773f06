// Reads TFRecord files: finds the frames, verifies both checksums.
//
//   0         8                12               12 + length
//   ┌─────────┬────────────────┬────────────────┬───────────────────────┐
//   │ length  │ checksum of    │ data           │ checksum of the data  │
//   │ u64     │ those 8 bytes  │ length bytes   │ u32                   │
//   └─────────┴────────────────┴────────────────┴───────────────────────┘
//
// Numbers are little-endian, checksums masked CRC-32C (io/crc32c.h).
//
// Small records are read in chunks and lie in the chunk's memory until it is filled again. A record
// longer than kLateRecordBytes is only located: whoever handles it reads it later (ReadRecord), so
// that waiting in a shuffle buffer costs no memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/base/arena.h"
#include "server/base/file.h"

namespace penstock {

inline constexpr uint64_t kRecordHeaderBytes = 12;
inline constexpr uint64_t kRecordFooterBytes = 4;
inline constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;
inline constexpr uint64_t kLateRecordBytes = 8 << 10;
inline constexpr size_t kChunkBytes = 64 << 10;

// Consecutive records of one file, as one read found them.
struct RecordChunk {
  struct Record {
    uint64_t offset;  // of the header in the file
    uint32_t length;  // of the data
    bool late;        // not in `buffer`
  };

  std::vector<Record> records;
  std::unique_ptr<uint8_t[]> buffer;  // kChunkBytes and Arena::kPadding
  uint64_t buffer_offset = 0;         // where in the file the buffer begins
  uint64_t bytes_read = 0;

  // What stopped the reading behind the last record; OK when nothing did.
  absl::Status error;
  uint64_t error_offset = 0;
  bool end_of_file = false;
  uint64_t next_offset = 0;   // where the next chunk begins
  bool next_is_late = false;  // the next record is probably a long one

  const uint8_t* data(const Record& record) const {
    return buffer.get() + (record.offset + kRecordHeaderBytes - buffer_offset);
  }
};

// Fills `chunk` with the records from `offset` on: as many as fit a chunk (one or more), or the
// late ones up to a limit. Errors are put into the chunk, behind the records that precede them.
void ReadChunk(RandomAccessFile& file, uint64_t offset, bool expect_late, RecordChunk* chunk);

// Reads and verifies one late record into memory of `arena`.
absl::StatusOr<const uint8_t*> ReadRecord(RandomAccessFile& file, uint64_t offset, uint32_t length,
                                          Arena& arena);

// The ordinal in its file of the record at `offset`, found by walking the headers: for messages.
uint64_t RecordOrdinal(RandomAccessFile& file, uint64_t offset);

// `status` with its address appended: "(chess-003.tfrecord, record 17, offset 4093)".
absl::Status WithAddress(const absl::Status& status, RandomAccessFile& file, uint64_t offset);

}  // namespace penstock
