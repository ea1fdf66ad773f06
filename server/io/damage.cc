#include "server/io/damage.h"

namespace penstock {

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
  }
  return "unknown reason";
}

}  // namespace penstock
