// One TFRecord frame, as tfrecord_reader.h draws it: its numbers and its checks.
//
// Threads:  functions without state.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>

#include "absl/status/status.h"
#include "io/file/crc32c.h"
#include "io/record/record_chunk.h"

namespace penstock {

inline constexpr uint64_t kFrameBytes = kRecordHeaderBytes + kRecordFooterBytes;

inline uint32_t LoadU32(const uint8_t* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

inline uint64_t LoadU64(const uint8_t* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// Whether the checksum of the 12 bytes of a header holds.
inline bool HeaderHolds(const uint8_t* header) {
  return MaskCrc32c(Crc32cOfU64(LoadU64(header))) == LoadU32(header + 8);
}

// Whether the checksum behind `length` bytes of data holds.
inline bool DataHolds(const uint8_t* data, uint64_t length) {
  return MaskCrc32c(Crc32c(data, length)) == LoadU32(data + length);
}

// What is wrong with a header that has `left` bytes from its first on to the end of the file.
inline std::optional<DamageReason> CheckHeader(const uint8_t* header, uint64_t left) {
  if (!HeaderHolds(header)) return DamageReason::kLengthChecksum;
  const uint64_t length = LoadU64(header);
  if (length > kMaxRecordBytes) return DamageReason::kTooLong;
  if (length + kFrameBytes > left) return DamageReason::kCutRecord;
  return std::nullopt;
}

// The error, without its address, of a damaged frame. At `frame` are 12 bytes (for kCutHeader none
// are needed), for kDataChecksum all; `left` bytes are left in the file. `first`: it is the file's
// first record, so the file may be of another kind altogether.
absl::Status DescribeDamage(DamageReason reason, const uint8_t* frame, uint64_t left, bool first);

absl::Status DataChecksumError(uint32_t stored, uint32_t computed);

}  // namespace penstock
