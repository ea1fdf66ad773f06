#include "io/arrow/arrow_codec.h"

// For ZSTD_d_stableOutBuffer.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "base/in_pieces.h"
#include "io/arrow/lz4_frame.h"

namespace penstock {
namespace {

constexpr int64_t kAsItIs = -1;

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

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

// What became of frames; `error` is null where they were sound.
struct Unpacked {
  size_t bytes = 0;
  const char* error = nullptr;
};

Unpacked AtOnce(ZSTD_DCtx* context, absl::Span<const uint8_t> frames, ArrowMemory* memory) {
  const size_t found = ZSTD_decompressDCtx(context, memory->block.get(), memory->bytes,
                                           frames.data(), frames.size());
  return ZSTD_isError(found) ? Unpacked{0, ZSTD_getErrorName(found)} : Unpacked{found, nullptr};
}

// The same with a look for a stop between two pieces. Plain bytes go where they belong at once: the
// decompressor has no window of its own.
Unpacked InPiecesOfFrames(ZSTD_DCtx* context, absl::Span<const uint8_t> frames,
                          ArrowMemory* memory) {
  // It may be in the middle of a frame that was given up.
  ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_DCtx_setParameter(context, ZSTD_d_stableOutBuffer, 1);
  // Of any window, as at once.
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax,
                         ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  const size_t pieces = (memory->bytes + kPieceBytes - 1) / kPieceBytes;
  const size_t piece = std::max<size_t>(1, frames.size() / pieces);
  ZSTD_inBuffer in = {frames.data(), 0, 0};
  ZSTD_outBuffer out = {memory->block.get(), memory->bytes, 0};
  size_t left = 1;  // 0 behind the end of a frame
  while (in.pos < frames.size()) {
    CheckStop();
    const size_t before = in.pos;
    in.size = std::min(frames.size(), in.pos + piece);
    left = ZSTD_decompressStream(context, &out, &in);
    if (ZSTD_isError(left)) return {0, ZSTD_getErrorName(left)};
    if (in.pos == before) return {0, ZSTD_getErrorString(ZSTD_error_dstSize_tooSmall)};
  }
  if (left != 0) return {0, ZSTD_getErrorString(ZSTD_error_srcSize_wrong)};
  return {out.pos, nullptr};
}

absl::StatusOr<ArrowMemory> UnpackZstd(absl::Span<const uint8_t> frame, uint64_t claimed) {
  // Most frames say it themselves: no memory is asked for where the two differ.
  const unsigned long long said = ZSTD_getFrameContentSize(frame.data(), frame.size());
  if (said == ZSTD_CONTENTSIZE_ERROR)
    return absl::DataLossError("a compressed buffer is no zstd frame");
  if (said != ZSTD_CONTENTSIZE_UNKNOWN && said != claimed) {
    return absl::DataLossError(absl::StrCat("a compressed buffer says that it holds ", claimed,
                                            " bytes, and its frame ", said));
  }
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for a zstd decompressor");
  ArrowMemory memory = AllocateArrowMemory(claimed);
  const Unpacked found =
      (memory.bytes > kPieceBytes ? InPiecesOfFrames : AtOnce)(context.get(), frame, &memory);
  if (found.error != nullptr) {
    return absl::DataLossError(
        absl::StrCat("a compressed buffer cannot be unpacked: ", found.error));
  }
  if (found.bytes != memory.bytes) {
    return absl::DataLossError(absl::StrCat("a compressed buffer says that it holds ", claimed,
                                            " bytes, and holds ", found.bytes));
  }
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
