#include "io/record/tfrecord_frame.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "io/inflate/byte_stream.h"

namespace penstock {
namespace {

std::string ChecksumMismatch(const char* what, uint32_t stored, uint32_t computed) {
  return absl::StrFormat("%s checksum mismatch: stored 0x%08x, computed 0x%08x", what, stored,
                         computed);
}

// What a file that fails at its very first header most likely is.
std::string Hint(const uint8_t* header) {
  const absl::string_view guess = GuessFormat(absl::MakeConstSpan(header, kRecordHeaderBytes));
  const char* name = guess == "gzip"   ? "GZIP"
                     : guess == "zlib" ? "ZLIB"
                     : guess == "zstd" ? "ZSTD"
                                       : nullptr;
  if (name == nullptr) return "; not a TFRecord file?";
  return absl::StrCat("; it looks like a ", guess, " file: declare its compression as ", name);
}

}  // namespace

absl::Status DataChecksumError(uint32_t stored, uint32_t computed) {
  return absl::DataLossError(ChecksumMismatch("data", stored, computed));
}

absl::Status DescribeDamage(DamageReason reason, const uint8_t* frame, uint64_t left, bool first) {
  switch (reason) {
    case DamageReason::kLengthChecksum: {
      const uint32_t computed = MaskCrc32c(Crc32cOfU64(LoadU64(frame)));
      return absl::DataLossError(
          absl::StrCat(ChecksumMismatch("length", LoadU32(frame + 8), computed),
                       first ? Hint(frame) : std::string()));
    }
    case DamageReason::kDataChecksum: {
      const uint64_t length = LoadU64(frame);
      const uint8_t* data = frame + kRecordHeaderBytes;
      return DataChecksumError(LoadU32(data + length), MaskCrc32c(Crc32c(data, length)));
    }
    case DamageReason::kTooLong:
      return absl::DataLossError(absl::StrCat("record longer than limit: ", LoadU64(frame), " > ",
                                              kMaxRecordBytes, " bytes"));
    case DamageReason::kCutHeader:
      return absl::DataLossError(
          absl::StrCat("header is cut: expected 12 bytes, the file has ", left, " more"));
    case DamageReason::kCutRecord:
      return absl::DataLossError(absl::StrCat("record is cut: its length is ", LoadU64(frame),
                                              " bytes, the file has ", left - kRecordHeaderBytes,
                                              " more"));
    case DamageReason::kCompressedData:
    case DamageReason::kPartialRecord:
    case DamageReason::kValue:
    case DamageReason::kNoDocument:
      break;
  }
  return absl::DataLossError(DamageReasonName(reason));
}

}  // namespace penstock
