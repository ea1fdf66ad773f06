#include "io/file/damage.h"

#include "absl/strings/cord.h"

namespace penstock {
namespace {

constexpr char kShrunk[] = "penstock/file-shrunk";

}  // namespace

const char* DamageReasonName(DamageReason reason) {
  switch (reason) {
    case DamageReason::kLengthChecksum:
      return "length checksum mismatch";
    case DamageReason::kDataChecksum:
      return "data checksum mismatch";
    case DamageReason::kTooLong:
      return "longer than the limit";
    case DamageReason::kCutHeader:
      return "header is cut";
    case DamageReason::kCutRecord:
      return "record is cut";
    case DamageReason::kCompressedData:
      return "bad compressed data";
    case DamageReason::kPartialRecord:
      return "not a whole record";
    case DamageReason::kValue:
      return "a stage failed on it";
    case DamageReason::kNoDocument:
      return "not JSON";
  }
  return "unknown reason";
}

absl::Status FileShrunkError(const std::string& message) {
  absl::Status status = absl::DataLossError(message);
  status.SetPayload(kShrunk, absl::Cord());
  return status;
}

bool IsFileShrunk(const absl::Status& status) { return status.GetPayload(kShrunk).has_value(); }

absl::Status WithMessage(const absl::Status& status, const std::string& message) {
  absl::Status other(status.code(), message);
  status.ForEachPayload([&other](absl::string_view type, const absl::Cord& payload) {
    other.SetPayload(type, payload);
  });
  return other;
}

}  // namespace penstock
