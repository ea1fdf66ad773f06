#include "io/inflate/zstd_frames.h"

// For ZSTD_d_stableOutBuffer.
#define ZSTD_STATIC_LINKING_ONLY
#include <zstd.h>
#include <zstd_errors.h>

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"

namespace penstock {
namespace {

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// What became of frames; `error` is null where they were sound.
struct Unpacked {
  size_t bytes = 0;
  const char* error = nullptr;
};

Unpacked AtOnce(ZSTD_DCtx* context, absl::Span<const uint8_t> frames, absl::Span<uint8_t> plain) {
  const size_t found =
      ZSTD_decompressDCtx(context, plain.data(), plain.size(), frames.data(), frames.size());
  return ZSTD_isError(found) ? Unpacked{0, ZSTD_getErrorName(found)} : Unpacked{found, nullptr};
}

// The same with a look for a stop between two pieces. Plain bytes go where they belong at once: the
// decompressor has no window of its own.
Unpacked InPiecesOfFrames(ZSTD_DCtx* context, absl::Span<const uint8_t> frames,
                          absl::Span<uint8_t> plain) {
  // It may be in the middle of a frame that was given up.
  ZSTD_DCtx_reset(context, ZSTD_reset_session_and_parameters);
  ZSTD_DCtx_setParameter(context, ZSTD_d_stableOutBuffer, 1);
  // Of any window, as at once.
  ZSTD_DCtx_setParameter(context, ZSTD_d_windowLogMax,
                         ZSTD_dParam_getBounds(ZSTD_d_windowLogMax).upperBound);
  const size_t pieces = (plain.size() + kPieceBytes - 1) / kPieceBytes;
  const size_t piece = std::max<size_t>(1, frames.size() / pieces);
  ZSTD_inBuffer in = {frames.data(), 0, 0};
  ZSTD_outBuffer out = {plain.data(), plain.size(), 0};
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

}  // namespace

absl::Status CheckZstdSize(absl::Span<const uint8_t> frames, uint64_t plain_bytes) {
  const unsigned long long said = ZSTD_getFrameContentSize(frames.data(), frames.size());
  if (said == ZSTD_CONTENTSIZE_ERROR) return absl::DataLossError("it is no zstd frame");
  if (said != ZSTD_CONTENTSIZE_UNKNOWN && said != plain_bytes) {
    return absl::DataLossError(
        absl::StrCat("its zstd frame says that it holds ", said, " bytes, not ", plain_bytes));
  }
  return absl::OkStatus();
}

absl::Status UnpackZstdFrames(absl::Span<const uint8_t> frames, absl::Span<uint8_t> plain) {
  static thread_local const std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) return absl::ResourceExhaustedError("no memory for a zstd decompressor");
  const Unpacked found =
      (plain.size() > kPieceBytes ? InPiecesOfFrames : AtOnce)(context.get(), frames, plain);
  if (found.error != nullptr) return absl::DataLossError(found.error);
  if (found.bytes != plain.size()) {
    return absl::DataLossError(
        absl::StrCat("its zstd frames hold ", found.bytes, " bytes, not ", plain.size()));
  }
  return absl::OkStatus();
}

}  // namespace penstock
