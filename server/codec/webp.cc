#include "server/codec/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/codec/damaged.h"

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

void WebpDecoder::Delete::operator()(WebPAnimDecoder* animation) const {
  WebPAnimDecoderDelete(animation);
}

WebpDecoder::WebpDecoder() = default;
WebpDecoder::~WebpDecoder() = default;

absl::StatusOr<FramesShape> WebpDecoder::Start(const uint8_t* data, size_t size,
                                               const WebpOptions& options) {
  data_ = data;
  size_ = size;
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
  const WebPData contents = {data, size};
  animation_.reset(WebPAnimDecoderNew(&contents, nullptr));
  if (animation_ == nullptr) return Damaged("its frames are no animation, or not all there");
  WebPAnimInfo info;
  if (WebPAnimDecoderGetInfo(animation_.get(), &info) == 0 || info.frame_count == 0 ||
      info.canvas_width != shape_.width || info.canvas_height != shape_.height) {
    return Damaged("its frames are no animation");
  }
  if (options.first_frame_only) return shape_;
  shape_.frames = info.frame_count;
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
  const VP8StatusCode code = WebPDecode(data_, size_, &config);
  return code == VP8_STATUS_OK ? absl::OkStatus() : Damaged(Words(code));
}

absl::Status WebpDecoder::DecodeFrames(uint8_t* pixels) {
  const int64_t canvas_pixels = shape_.height * shape_.width;
  for (int64_t frame = 0; frame < shape_.frames; ++frame) {
    CheckStop();
    uint8_t* canvas = nullptr;  // always with alpha
    int end_ms = 0;
    if (WebPAnimDecoderHasMoreFrames(animation_.get()) == 0 ||
        WebPAnimDecoderGetNext(animation_.get(), &canvas, &end_ms) == 0) {
      return Damaged("its bits make no image (frame ", frame, ")");
    }
    if (shape_.channels == 4) {
      std::memcpy(pixels, canvas, static_cast<size_t>(canvas_pixels * 4));
      pixels += canvas_pixels * 4;
      continue;
    }
    for (int64_t i = 0; i < canvas_pixels; ++i, pixels += 3, canvas += 4)
      std::memcpy(pixels, canvas, 3);
  }
  return absl::OkStatus();
}

}  // namespace penstock
