// The frames of an animated WebP file as they stand on the whole canvas, one after another: those
// of libwebp's WebPAnimDecoder, which cannot be stopped within a frame.
//
// Threads:  one thread at a time.
// Owns:     libwebp's list of frames, and two canvases of four bytes a pixel, all of which is
//           charged to the thread's account; never the data.
// Cost:     as WebPAnimDecoder: libwebp decodes each frame; the canvas is copied twice for each.
//
// A frame is drawn over what stood there, or blended with it by its alpha; a frame may ask that
// its place is made transparent before the next one. How colours of two alphas are blended is
// libwebp's own rule, in whole numbers:
// https://developers.google.com/speed/webp/docs/riff_container#animation
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/large_charge.h"
#include "base/memory_block.h"

struct WebPDemuxer;

namespace penstock {

class WebpFrames {
 public:
  // Null where the frames are no animation, or are not all there. `data` must stay.
  static std::unique_ptr<WebpFrames> Open(const uint8_t* data, size_t size, int64_t pixels_at_once);
  ~WebpFrames();
  WebpFrames(const WebpFrames&) = delete;
  WebpFrames& operator=(const WebpFrames&) = delete;

  int64_t width() const { return width_; }
  int64_t height() const { return height_; }
  int64_t count() const { return count_; }

  // The canvas with the next frame on it, red, green, blue and alpha, until the next call. Null
  // where there is none, or its bits make no image.
  const uint8_t* Next();

 private:
  struct Place;
  struct Frame;
  struct Delete {
    void operator()(WebPDemuxer* frames) const;
  };

  WebpFrames(std::unique_ptr<LargeCharge> list, std::unique_ptr<WebPDemuxer, Delete> frames,
             int64_t pixels_at_once);
  void ClearUnder(const Place& place) const;
  bool IsKey(const Frame& frame) const;
  bool Decode(const uint8_t* data, size_t size, const Place& place) const;
  void Blend(const Place& place) const;
  void BlendRow(int64_t y, int64_t left, int64_t right) const;

  const std::unique_ptr<LargeCharge> list_;  // for what frames_ keeps
  const std::unique_ptr<WebPDemuxer, Delete> frames_;
  const int64_t pixels_at_once_;
  int64_t width_ = 0, height_ = 0, count_ = 0;
  int next_ = 1;  // from 1 on
  // Of the frame before; null in front of the first one.
  std::unique_ptr<Frame> before_;
  MemoryBlock canvas_;
  MemoryBlock under_;  // what the next frame is drawn on
};

}  // namespace penstock
