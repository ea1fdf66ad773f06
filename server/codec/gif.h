// Decodes GIF images through giflib, with the pixels of tf.io.decode_gif: every frame whole, drawn
// over the one before it.
//
// The canvas is as wide and as high as the largest frame, whatever the file's own screen is. What
// no frame covers is black, and so is what is transparent in the first one.
//
// Threads:  one thread at a time.
// Owns:     giflib's state; never the data.
// Limits:   kGifPixelsMax pixels of all frames together, checked before anything of the image's
//           size is allocated. giflib itself holds some hundred bytes a frame, and a frame takes
//           ten bytes of the file.
// Cost:     the file's blocks are gone through twice, its pixels decoded once.
//
// Errors are DataLoss: "GIF data is damaged: ...", with giflib's words. A frame that ends early is
// one; TensorFlow returns what its memory holds there. Whatever follows the last whole frame is not
// looked at, as in TensorFlow.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/codec/frames_shape.h"

namespace penstock {

inline constexpr int64_t kGifPixelsMax = int64_t{64} << 20;

struct GifOptions {
  bool first_frame_only = false;  // on the canvas of all
};

class GifDecoder {
 public:
  // Goes through the file's blocks. `data` must stay until Decode(). REQUIRES: called once.
  absl::StatusOr<FramesShape> Start(const uint8_t* data, size_t size, const GifOptions& options);

  // Writes shape.bytes() bytes: frames, rows from the top, red, green, blue. On failure the pixels
  // are undefined. REQUIRES: Start() succeeded.
  absl::Status Decode(uint8_t* pixels) const;

 private:
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  FramesShape shape_;
};

}  // namespace penstock
