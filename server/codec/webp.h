// Decodes WebP images through libwebp, with the pixels of tf.io.decode_webp: still images, and
// every frame of an animation as it stands on the whole canvas.
//
// Threads:  one thread at a time.
// Owns:     libwebp's state and the canvases of an animation; never the data.
// Limits:   kWebpSideMax pixels a side and kWebpPixelsMax pixels of all frames together, checked
//           before anything of the image's size is allocated; kWebpFramesMax frames, since libwebp
//           looks for each from the first one on. An animation takes 8 bytes for each pixel of its
//           canvas beside the result.
// Cost:     libwebp's own, and for animations a copy of each frame.
//
// A large image or frame is decoded in pieces of its file, with a look for a stop between two of
// them (base/stop_flag.h). Within a piece nothing can stop libwebp: nor within an image of a single
// colour, whose pieces are few bytes, one that is damaged, or a lossy one of some 16, in which
// there is a 255 where only a damaged one may have it.
//
// Errors are DataLoss: "WebP data is damaged: ...". Whatever follows the RIFF chunk is not looked
// at, as in TensorFlow.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/codec/frames_shape.h"

namespace penstock {

class WebpFrames;

inline constexpr int kWebpSideMax = 16384;
inline constexpr int64_t kWebpFramesMax = 16384;
inline constexpr int64_t kWebpPixelsMax = int64_t{64} << 20;
// Of a still image that is decoded by one call.
inline constexpr int64_t kWebpPixelsAtOnce = int64_t{4} << 20;

// Whether these are the first bytes of a WebP file, as TensorFlow looks at them.
bool IsWebp(const uint8_t* data, size_t size);

struct WebpOptions {
  int channels =
      0;  // 3: RGB, 4: RGB and alpha, 0: as in the image. What the image has not is refused.
  bool first_frame_only = false;  // of an animation
  int64_t pixels_at_once = kWebpPixelsAtOnce;
};

class WebpDecoder {
 public:
  WebpDecoder();
  ~WebpDecoder();
  WebpDecoder(const WebpDecoder&) = delete;
  WebpDecoder& operator=(const WebpDecoder&) = delete;

  // Reads the header, and of an animation that of each frame. `data` must stay until Decode().
  // REQUIRES: called once.
  absl::StatusOr<FramesShape> Start(const uint8_t* data, size_t size, const WebpOptions& options);

  // Writes shape.bytes() bytes: frames, rows from the top, red, green, blue, and alpha if the image
  // has it, by which the colors are not multiplied. On failure the pixels are undefined. REQUIRES:
  // Start() succeeded; called once.
  absl::Status Decode(uint8_t* pixels);

 private:
  absl::Status DecodeStill(uint8_t* pixels) const;
  absl::Status DecodeFrames(uint8_t* pixels);

  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  int64_t pixels_at_once_ = 0;
  FramesShape shape_;
  std::unique_ptr<WebpFrames> animation_;  // null for a still image
};

}  // namespace penstock
