#include "server/codec/webp.h"

#include <webp/decode.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/in_pieces.h"
#include "server/codec/damaged.h"
#include "server/codec/webp_frames.h"
#include "server/codec/webp_pieces.h"

namespace penstock {
namespace {

const char* Words(VP8StatusCode code) {
  switch (code) {
    case VP8_STATUS_OUT_OF_MEMORY:
      return "no memory for it";
    case VP8_STATUS_UNSUPPORTED_FEATURE:
      return "a feature that libwebp has not";
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
      return "it ends early";
    default:
      return "its bits make no image";
  }
}

template <typename... Words>
absl::Status Damaged(const Words&... words) {
  return DamagedData("WebP", words...);
}

}  // namespace

bool IsWebp(const uint8_t* data, size_t size) {
  return size > 12 && std::memcmp(data, "RIFF", 4) == 0 && std::memcmp(data + 8, "WEBP", 4) == 0;
}

WebpDecoder::WebpDecoder() = default;
WebpDecoder::~WebpDecoder() = default;

absl::StatusOr<FramesShape> WebpDecoder::Start(const uint8_t* data, size_t size,
                                               const WebpOptions& options) {
  data_ = data;
  size_ = size;
  pixels_at_once_ = options.pixels_at_once;
  // libwebp would take what stands inside of the RIFF chunk alone, too.
  if (!IsWebp(data, size))
    return absl::DataLossError(absl::StrCat("no WebP image by its first bytes: ", size, " bytes"));
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(data, size, &features);
  if (code != VP8_STATUS_OK) return Damaged(Words(code));
  shape_ = {1, features.height, features.width, features.has_alpha != 0 ? 4 : 3};
  if (shape_.height > kWebpSideMax || shape_.width > kWebpSideMax ||
      shape_.height * shape_.width > kWebpPixelsMax) {
    return absl::DataLossError(absl::StrCat("WebP image is too large: ", shape_.width, " x ",
                                            shape_.height, " > ", kWebpSideMax, " x ", kWebpSideMax,
                                            " or ", kWebpPixelsMax, " pixels"));
  }
  if (options.channels != 0 && options.channels != shape_.channels) {
    return absl::DataLossError(
        absl::StrCat("WebP image has ", shape_.channels, " channels, not ", options.channels));
  }
  if (features.has_animation == 0) return shape_;
  animation_ = WebpFrames::Open(data, size, options.pixels_at_once);
  if (animation_ == nullptr) return Damaged("its frames are no animation, or not all there");
  if (animation_->count() == 0 || animation_->width() != shape_.width ||
      animation_->height() != shape_.height)
    return Damaged("its frames are no animation");
  if (options.first_frame_only) return shape_;
  shape_.frames = animation_->count();
  if (shape_.frames > kWebpFramesMax ||
      shape_.frames * shape_.height * shape_.width > kWebpPixelsMax) {
    return absl::DataLossError(
        absl::StrCat("WebP image is too large: ", shape_.frames, " frames of ", shape_.width, " x ",
                     shape_.height, " > ", kWebpFramesMax, " or ", kWebpPixelsMax, " pixels"));
  }
  return shape_;
}

absl::Status WebpDecoder::Decode(uint8_t* pixels) {
  return animation_ == nullptr ? DecodeStill(pixels) : DecodeFrames(pixels);
}

absl::Status WebpDecoder::DecodeStill(uint8_t* pixels) const {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0)
    return absl::InternalError("libwebp is of another version");
  config.output.colorspace = shape_.channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  config.output.u.RGBA.rgba = pixels;
  config.output.u.RGBA.stride = static_cast<int>(shape_.width * shape_.channels);
  config.output.u.RGBA.size = shape_.bytes();
  const VP8StatusCode code = DecodeWebp(data_, size_, pixels_at_once_, &config);
  return code == VP8_STATUS_OK ? absl::OkStatus() : Damaged(Words(code));
}

absl::Status WebpDecoder::DecodeFrames(uint8_t* pixels) {
  const auto canvas_pixels = static_cast<size_t>(shape_.height * shape_.width);
  for (int64_t frame = 0; frame < shape_.frames; ++frame) {
    CheckStop();
    const uint8_t* canvas = animation_->Next();  // always with alpha
    if (canvas == nullptr) return Damaged("its bits make no image (frame ", frame, ")");
    if (shape_.channels == 4) {
      CopyInPieces(pixels, canvas, canvas_pixels * 4);
      pixels += canvas_pixels * 4;
      continue;
    }
    InPieces(canvas_pixels, [&](size_t, size_t some) {
      for (size_t i = 0; i < some; ++i, pixels += 3, canvas += 4) std::memcpy(pixels, canvas, 3);
    });
  }
  return absl::OkStatus();
}

}  // namespace penstock
