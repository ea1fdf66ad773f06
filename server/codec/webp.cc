#include "server/codec/webp.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/codec/damaged.h"

namespace penstock {
namespace {

constexpr size_t kRiffHeadBytes = 8;
constexpr size_t kFirstChunk = 12;
// Of the largest image, some 30 ms each.
constexpr size_t kPieces = 64;

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

uint32_t LittleEndian(const uint8_t* from, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint32_t{from[i]} << (8 * i);
  return value;
}

// Whether a part of a lossy image may begin with 255, which no coder writes: what libwebp makes of
// it depends on how much it has at once. Where parts begin depends on how many there are (1, 2, 4
// or 8), which only decoding tells: all are looked at.
// https://www.rfc-editor.org/rfc/rfc6386, 9.5. REQUIRES: a sound header.
bool MayBeginWith255(const uint8_t* data, size_t size) {
  constexpr size_t kChunkHeadBytes = 8, kFrameHeadBytes = 10, kPartSizeBytes = 3;
  size_t at = kFirstChunk;
  while (at + kChunkHeadBytes <= size && std::memcmp(data + at, "VP8 ", 4) != 0) {
    const uint64_t bytes = LittleEndian(data + at + 4, 4);
    at += kChunkHeadBytes + bytes + bytes % 2;
  }
  const size_t frame = at + kChunkHeadBytes;
  if (frame + kFrameHeadBytes > size) return true;
  const size_t sizes = frame + kFrameHeadBytes + (LittleEndian(data + frame, 3) >> 5);
  for (size_t parts = 1; parts <= 8; parts *= 2) {
    size_t begin = sizes + kPartSizeBytes * (parts - 1);
    for (size_t i = 0; i < parts && begin < size; ++i) {
      if (data[begin] == 255) return true;
      if (i + 1 < parts) begin += LittleEndian(data + sizes + kPartSizeBytes * i, kPartSizeBytes);
    }
  }
  return false;
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
  pixels_at_once_ = options.pixels_at_once;
  // libwebp would take what stands inside of the RIFF chunk alone, too.
  if (!IsWebp(data, size))
    return absl::DataLossError(absl::StrCat("no WebP image by its first bytes: ", size, " bytes"));
  WebPBitstreamFeatures features;
  const VP8StatusCode code = WebPGetFeatures(data, size, &features);
  if (code != VP8_STATUS_OK) return Damaged(Words(code));
  is_lossless_ = features.format == 2;
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
  if (shape_.height * shape_.width > pixels_at_once_ && DecodeInPieces(&config))
    return absl::OkStatus();
  const VP8StatusCode code = WebPDecode(data_, size_, &config);
  return code == VP8_STATUS_OK ? absl::OkStatus() : Damaged(Words(code));
}

bool WebpDecoder::DecodeInPieces(WebPDecoderConfig* config) const {
  // Where the RIFF chunk is longer than the file, libwebp refuses the whole and takes pieces.
  if (LittleEndian(data_ + 4, 4) > size_ - kRiffHeadBytes) return false;
  if (!is_lossless_ && MayBeginWith255(data_, size_)) return false;
  const std::unique_ptr<WebPIDecoder, void (*)(WebPIDecoder*)> decoder(
      WebPIDecode(nullptr, 0, config), &WebPIDelete);
  if (decoder == nullptr) return false;
  const size_t piece = (size_ + kPieces - 1) / kPieces;
  // Of a lossless image tables stand in front of the pixels, which are read from the beginning with
  // each piece until they are there, from an eighth of the file on. So pieces grow until then:
  // seven of them at most, and three times the work of one.
  bool grows = is_lossless_;
  size_t given = std::min(size_, grows ? size_ / 8 + piece : piece);
  while (true) {
    CheckStop();
    const VP8StatusCode code = WebPIUpdate(decoder.get(), data_, given);
    if (code == VP8_STATUS_OK) return true;
    if (code != VP8_STATUS_SUSPENDED || given == size_) return false;
    int rows = 0;
    if (WebPIDecGetRGB(decoder.get(), &rows, nullptr, nullptr, nullptr) != nullptr && rows > 0)
      grows = false;
    given = std::min(size_, grows ? given + given / 2 + piece : given + piece);
  }
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
