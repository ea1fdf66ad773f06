// Consecutive records of one file, as one read found them: what ReadChunk (tfrecord_reader.h) and
// RecordStream (record_stream.h) fill.
//
// Threads:  a value that one task fills and hands on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "io/file/damage.h"

namespace penstock {

inline constexpr uint64_t kRecordHeaderBytes = 12;
inline constexpr uint64_t kRecordFooterBytes = 4;
inline constexpr uint64_t kMaxRecordBytes = uint64_t{256} << 20;
inline constexpr uint64_t kLateRecordBytes = 8 << 10;
inline constexpr size_t kChunkBytes = 64 << 10;

struct RecordChunk {
  struct Record {
    uint64_t offset;  // of the header in the file (in a compressed one: in its plain bytes)
    uint32_t length;  // of the data
    bool late;        // not at hand: to be read by ReadRecord
  };

  std::vector<Record> records;
  // What was passed over, by offset; only with OnDamage::kSkipRecord.
  std::vector<Damage> damage;

  // Where the bytes from `buffer_offset` on are, up to the next read; Arena::kPadding bytes behind
  // the last record may be read.
  const uint8_t* bytes = nullptr;
  uint64_t buffer_offset = 0;
  uint32_t header_bytes = kRecordHeaderBytes;  // from a record's offset to its data
  std::unique_ptr<uint8_t[]> buffer;           // ReadChunk's own: kChunkBytes and the padding
  uint64_t bytes_read = 0;                     // from the file

  // What stopped the reading behind the last record; OK when nothing did.
  absl::Status error;
  uint64_t error_offset = 0;
  DamageReason error_reason = DamageReason::kLengthChecksum;  // of an error that is damage
  bool end_of_file = false;
  uint64_t next_offset = 0;   // where the next chunk begins
  bool next_is_late = false;  // the next record is probably a long one

  const uint8_t* data(const Record& record) const {
    return bytes + (record.offset + header_bytes - buffer_offset);
  }
};

}  // namespace penstock
