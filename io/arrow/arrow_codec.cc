#include "io/arrow/arrow_codec.h"

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "base/in_pieces.h"
#include "io/arrow/lz4_frame.h"
#include "io/file/damage.h"
#include "io/inflate/zstd_frames.h"

namespace penstock {
namespace {

constexpr int64_t kAsItIs = -1;

absl::StatusOr<ArrowMemory> UnpackLz4(absl::Span<const uint8_t> frame, uint64_t claimed) {
  // No memory is asked for that no frame of these bytes could fill.
  if (claimed / kMaxLz4Ratio > frame.size()) {
    return absl::DataLossError(absl::StrCat("a compressed buffer says that it holds ", claimed,
                                            " bytes, more than ", frame.size(), " can"));
  }
  ArrowMemory memory = AllocateArrowMemory(claimed);
  const absl::Status status =
      UnpackLz4Frame(frame, absl::MakeSpan(memory.block.get(), memory.bytes));
  if (status.ok()) return memory;
  return absl::DataLossError(
      absl::StrCat("a compressed buffer cannot be unpacked: ", status.message()));
}

absl::StatusOr<ArrowMemory> UnpackZstd(absl::Span<const uint8_t> frame, uint64_t claimed) {
  const auto wrong = [](const absl::Status& status) {
    return WithMessage(status,
                       absl::StrCat("a compressed buffer cannot be unpacked: ", status.message()));
  };
  if (absl::Status status = CheckZstdSize(frame, claimed); !status.ok()) return wrong(status);
  ArrowMemory memory = AllocateArrowMemory(claimed);
  const absl::Status status =
      UnpackZstdFrames(frame, absl::MakeSpan(memory.block.get(), memory.bytes));
  if (!status.ok()) return wrong(status);
  return memory;
}

}  // namespace

ArrowMemory AllocateArrowMemory(uint64_t bytes) {
  ArrowMemory memory{AllocateMemoryBlock(bytes + Arena::kPadding), bytes};
  std::memset(memory.block.get() + bytes, 0, Arena::kPadding);
  return memory;
}

absl::StatusOr<ArrowMemory> UnpackArrowBuffer(ArrowCodec codec, absl::Span<const uint8_t> packed) {
  if (packed.empty()) return AllocateArrowMemory(0);
  int64_t claimed = 0;
  if (packed.size() < sizeof(claimed)) {
    return absl::DataLossError(
        absl::StrCat("a compressed buffer of ", packed.size(), " bytes, too few for its size"));
  }
  std::memcpy(&claimed, packed.data(), sizeof(claimed));
  packed.remove_prefix(sizeof(claimed));
  if (claimed == kAsItIs) {
    ArrowMemory memory = AllocateArrowMemory(packed.size());
    CopyInPieces(memory.block.get(), packed.data(), packed.size());
    return memory;
  }
  if (claimed < 0 || static_cast<uint64_t>(claimed) > kMaxArrowBufferBytes) {
    return absl::DataLossError(absl::StrCat("a compressed buffer says that it holds ", claimed,
                                            " bytes; expected at most ", kMaxArrowBufferBytes));
  }
  // Arrow's Java writer leaves the frame out then.
  if (claimed == 0 && packed.empty()) return AllocateArrowMemory(0);
  const auto plain = static_cast<uint64_t>(claimed);
  return codec == ArrowCodec::kLz4Frame ? UnpackLz4(packed, plain) : UnpackZstd(packed, plain);
}

}  // namespace penstock
