// What is wrong with a stretch of a file, and what a reader does about it.
//
// Threads:  values, and functions without state.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock {

enum class OnDamage : uint8_t {
  kFail,        // reading ends with an error at the first damage
  kSkipRecord,  // reading goes on behind it; what was skipped is listed
  // As kFail for who reads a file, but all of a record is verified before it is told of
  kSkipShard,
};

enum class DamageReason : uint8_t {
  kLengthChecksum = 1,  // a header whose checksum does not hold, or no header at all
  kDataChecksum = 2,    // a record whose data does not match its checksum
  kTooLong = 3,         // a length or line above kMaxRecordBytes
  kCutHeader = 4,       // the file ends inside a header
  kCutRecord = 5,       // the file ends inside a record
  kCompressedData = 6,  // what follows cannot be decompressed
  kPartialRecord = 7,   // fixed-length records: a rest that is no whole record
  kValue = 8,           // a sound record that a later stage can do nothing with
  kNoDocument = 9,      // a line that is no JSON document
};

// As a user reads it.
const char* DamageReasonName(DamageReason reason);

// The length of damage that goes to the end of a compressed file, whose plain size nobody knows.
inline constexpr uint64_t kDamageToTheEnd = ~uint64_t{0};

// What lies between the last sound record and the next. Offsets are those of the plain bytes.
struct Damage {
  uint64_t offset = 0;
  uint64_t length = 0;
  DamageReason reason = DamageReason::kLengthChecksum;

  friend bool operator==(const Damage&, const Damage&) = default;
};

// The error of a file that is shorter than it was when it was opened: DataLoss, but of the disk. No
// policy passes over it, whatever is added to its message by WithMessage().
absl::Status FileShrunkError(const std::string& message);
bool IsFileShrunk(const absl::Status& status);

// `status` with another message, and all else that it carries.
absl::Status WithMessage(const absl::Status& status, const std::string& message);

}  // namespace penstock
