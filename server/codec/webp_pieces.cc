#include "server/codec/webp_pieces.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "base/large_charge.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

constexpr size_t kRiffHeadBytes = 8, kFileHeadBytes = 12;
// Of the largest image, some 30 ms each.
constexpr size_t kPieces = 64;

uint32_t LittleEndian(const uint8_t* from, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value |= uint32_t{from[i]} << (8 * i);
  return value;
}

bool IsFile(const uint8_t* data, size_t size) {
  return size > kFileHeadBytes && std::memcmp(data, "RIFF", 4) == 0;
}

// Whether a part of a lossy image may begin with 255, which no coder writes: what libwebp makes of
// it depends on how much it has at once. Where parts begin depends on how many there are (1, 2, 4
// or 8), which only decoding tells: all are looked at.
// https://www.rfc-editor.org/rfc/rfc6386, 9.5. REQUIRES: a sound header.
bool MayBeginWith255(const uint8_t* data, size_t size) {
  constexpr size_t kChunkHeadBytes = 8, kFrameHeadBytes = 10, kPartSizeBytes = 3;
  size_t at = IsFile(data, size) ? kFileHeadBytes : 0;
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

// How many bytes libwebp keeps of each pixel while it decodes: all of a lossless image, and the
// alpha of a lossy one, which is at most a lossless image of its own. Of a lossy image itself it
// keeps a few rows.
uint64_t KeptOfPixel(bool is_lossless, bool has_alpha) {
  if (is_lossless) return sizeof(uint32_t);
  return has_alpha ? sizeof(uint8_t) + sizeof(uint32_t) : 0;
}

// Whether it was decoded; else the call for all of it says what is wrong, or right. REQUIRES: a
// sound header.
bool DecodeInPieces(const uint8_t* data, size_t size, bool is_lossless, WebPDecoderConfig* config) {
  // Where the RIFF chunk is longer than the file, libwebp refuses the whole and takes pieces.
  if (IsFile(data, size) && LittleEndian(data + 4, 4) > size - kRiffHeadBytes) return false;
  if (!is_lossless && MayBeginWith255(data, size)) return false;
  const std::unique_ptr<WebPIDecoder, void (*)(WebPIDecoder*)> decoder(
      WebPIDecode(nullptr, 0, config), &WebPIDelete);
  if (decoder == nullptr) return false;
  const size_t piece = (size + kPieces - 1) / kPieces;
  // Of a lossless image tables stand in front of the pixels, which are read from the beginning with
  // each piece until they are there, from an eighth of the file on. So pieces grow until then:
  // seven of them at most, and three times the work of one.
  bool grows = is_lossless;
  size_t given = std::min(size, grows ? size / 8 + piece : piece);
  while (true) {
    CheckStop();
    const VP8StatusCode code = WebPIUpdate(decoder.get(), data, given);
    if (code == VP8_STATUS_OK) return true;
    if (code != VP8_STATUS_SUSPENDED || given == size) return false;
    int rows = 0;
    if (WebPIDecGetRGB(decoder.get(), &rows, nullptr, nullptr, nullptr) != nullptr && rows > 0)
      grows = false;
    given = std::min(size, grows ? given + given / 2 + piece : given + piece);
  }
}

}  // namespace

VP8StatusCode DecodeWebp(const uint8_t* data, size_t size, int64_t pixels_at_once,
                         WebPDecoderConfig* config) {
  WebPBitstreamFeatures features;
  if (const VP8StatusCode code = WebPGetFeatures(data, size, &features); code != VP8_STATUS_OK)
    return code;
  const bool is_lossless = features.format == 2;
  const int64_t pixels = int64_t{features.width} * features.height;
  LargeCharge charge;
  charge.Add(static_cast<uint64_t>(pixels) * KeptOfPixel(is_lossless, features.has_alpha != 0));
  if (pixels > pixels_at_once && DecodeInPieces(data, size, is_lossless, config))
    return VP8_STATUS_OK;
  return WebPDecode(data, size, config);
}

}  // namespace penstock
