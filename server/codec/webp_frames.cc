#include "server/codec/webp_frames.h"

#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/in_pieces.h"
#include "server/codec/webp_pieces.h"

namespace penstock {
namespace {

constexpr int64_t kPixelBytes = 4;
// libwebp 1.2 keeps less for each chunk that it meets: 80 bytes of a frame, 24 of another, and what
// malloc adds.
constexpr uint64_t kChunkKeeps = 96;

// The chunks of a RIFF file, as far as their sizes lead. Each is eight bytes at least.
uint64_t CountChunks(const uint8_t* data, size_t size) {
  constexpr size_t kFileHeaderBytes = 12, kHeaderBytes = 8;
  uint64_t count = 0;
  for (uint64_t at = kFileHeaderBytes; at + kHeaderBytes <= size; ++count) {
    uint32_t bytes = 0;
    std::memcpy(&bytes, data + at + 4, sizeof(bytes));
    at += kHeaderBytes + uint64_t{bytes} + (bytes & 1);
  }
  return count;
}

// One channel of two pixels, by what they weigh: a whole and a part of 255. `scale`: 2^24 by the
// sum of both.
uint8_t BlendChannel(uint8_t over, uint32_t over_alpha, uint8_t under, uint32_t under_alpha,
                     uint32_t scale) {
  return static_cast<uint8_t>((over * over_alpha + under * under_alpha) * scale >> 24);
}

void BlendPixel(uint8_t* over, const uint8_t* under) {
  const uint32_t over_alpha = over[3];
  if (over_alpha == 255) return;
  if (over_alpha == 0) {
    std::memcpy(over, under, kPixelBytes);
    return;
  }
  const uint32_t under_alpha = under[3] * (256 - over_alpha) >> 8;
  const uint32_t alpha = over_alpha + under_alpha;
  const uint32_t scale = (uint32_t{1} << 24) / alpha;
  for (int channel = 0; channel < 3; ++channel) {
    over[channel] = BlendChannel(over[channel], over_alpha, under[channel], under_alpha, scale);
  }
  over[3] = static_cast<uint8_t>(alpha);
}

}  // namespace

// A part of the canvas.
struct WebpFrames::Place {
  int64_t x = 0, y = 0, width = 0, height = 0;
};

struct WebpFrames::Frame {
  Place place;
  bool has_alpha = false;
  bool blends = false;    // with what is under it
  bool clears = false;    // its place is transparent under the next one
  bool is_key = false;    // nothing under it is seen
  bool is_whole = false;  // its place is the canvas
};

void WebpFrames::Delete::operator()(WebPDemuxer* frames) const { WebPDemuxDelete(frames); }

std::unique_ptr<WebpFrames> WebpFrames::Open(const uint8_t* data, size_t size,
                                             int64_t pixels_at_once) {
  const WebPData contents = {data, size};
  auto list = std::make_unique<LargeCharge>();
  list->Add(kChunkKeeps * CountChunks(data, size));
  std::unique_ptr<WebPDemuxer, Delete> frames(WebPDemux(&contents));
  if (frames == nullptr) return nullptr;
  return std::unique_ptr<WebpFrames>(
      new WebpFrames(std::move(list), std::move(frames), pixels_at_once));
}

WebpFrames::WebpFrames(std::unique_ptr<LargeCharge> list,
                       std::unique_ptr<WebPDemuxer, Delete> frames, int64_t pixels_at_once)
    : list_(std::move(list)),
      frames_(std::move(frames)),
      pixels_at_once_(pixels_at_once),
      width_(WebPDemuxGetI(frames_.get(), WEBP_FF_CANVAS_WIDTH)),
      height_(WebPDemuxGetI(frames_.get(), WEBP_FF_CANVAS_HEIGHT)),
      count_(WebPDemuxGetI(frames_.get(), WEBP_FF_FRAME_COUNT)) {}

WebpFrames::~WebpFrames() = default;

const uint8_t* WebpFrames::Next() {
  WebPIterator found;
  // Number 0 would be the last one.
  if (next_ > count_ || WebPDemuxGetFrame(frames_.get(), next_, &found) == 0) return nullptr;
  Frame frame;
  frame.place = {found.x_offset, found.y_offset, found.width, found.height};
  frame.has_alpha = found.has_alpha != 0;
  frame.blends = found.blend_method == WEBP_MUX_BLEND;
  frame.clears = found.dispose_method == WEBP_MUX_DISPOSE_BACKGROUND;
  frame.is_whole = found.width == width_ && found.height == height_;
  frame.is_key = IsKey(frame);
  const WebPData data = found.fragment;
  WebPDemuxReleaseIterator(&found);
  ++next_;
  const auto canvas_bytes = static_cast<size_t>(width_ * height_ * kPixelBytes);
  if (canvas_ == nullptr) canvas_ = AllocateMemoryBlock(canvas_bytes);
  if (before_ != nullptr) {
    if (under_ == nullptr) under_ = AllocateMemoryBlock(canvas_bytes);
    CopyInPieces(under_.get(), canvas_.get(), canvas_bytes);
    if (before_->clears) ClearUnder(before_->place);
  }
  if (frame.is_key) {
    ClearInPieces(canvas_.get(), canvas_bytes);
  } else {
    CopyInPieces(canvas_.get(), under_.get(), canvas_bytes);
  }
  if (!Decode(data.bytes, data.size, frame.place)) return nullptr;
  if (frame.blends && !frame.is_key) Blend(frame.place);
  before_ = std::make_unique<Frame>(frame);
  return canvas_.get();
}

void WebpFrames::ClearUnder(const Place& place) const {
  const auto bytes = static_cast<size_t>(place.width * kPixelBytes);
  StopLook look;
  for (int64_t y = place.y; y < place.y + place.height; ++y) {
    std::memset(under_.get() + (y * width_ + place.x) * kPixelBytes, 0, bytes);
    look.Did(bytes);
  }
}

bool WebpFrames::IsKey(const Frame& frame) const {
  if (before_ == nullptr) return true;
  if (frame.is_whole && (!frame.has_alpha || !frame.blends)) return true;
  return before_->clears && (before_->is_whole || before_->is_key);
}

bool WebpFrames::Decode(const uint8_t* data, size_t size, const Place& place) const {
  WebPDecoderConfig config;
  if (WebPInitDecoderConfig(&config) == 0) return false;
  config.output.colorspace = MODE_RGBA;
  config.output.is_external_memory = 1;
  WebPRGBABuffer& pixels = config.output.u.RGBA;
  pixels.rgba = canvas_.get() + (place.y * width_ + place.x) * kPixelBytes;
  pixels.stride = static_cast<int>(width_ * kPixelBytes);
  pixels.size = static_cast<size_t>(pixels.stride) * static_cast<size_t>(place.height);
  return DecodeWebp(data, size, pixels_at_once_, &config) == VP8_STATUS_OK;
}

// What the frame before has cleared is nothing that could be blended with.
void WebpFrames::Blend(const Place& place) const {
  const int64_t right = place.x + place.width;
  const Place& cleared = before_->place;
  const int64_t cleared_right = cleared.x + cleared.width;
  StopLook look;
  for (int64_t y = place.y; y < place.y + place.height; ++y) {
    look.Did(static_cast<uint64_t>(place.width * kPixelBytes));
    const bool beside = y < cleared.y || y >= cleared.y + cleared.height ||
                        place.x >= cleared_right || right <= cleared.x;
    if (!before_->clears || beside) {
      BlendRow(y, place.x, right);
      continue;
    }
    BlendRow(y, place.x, cleared.x);
    BlendRow(y, cleared_right, right);
  }
}

void WebpFrames::BlendRow(int64_t y, int64_t left, int64_t right) const {
  for (int64_t x = left; x < right; ++x) {
    const int64_t at = (y * width_ + x) * kPixelBytes;
    BlendPixel(canvas_.get() + at, under_.get() + at);
  }
}

}  // namespace penstock
