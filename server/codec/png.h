// Decodes PNG images through libpng, and plain ones by server/codec/plain_png.h, with the
// arguments, the pixels and the verdicts of tf.io.decode_png.
//
// Threads:  one thread at a time.
// Owns:     libpng's state for one image; never the data.
// Limits:   kPngSideMax pixels a side, kPngPixelsMax in all, checked before anything of the image's
//           size is allocated. Chunks of text are passed over, so libpng holds none of them.
// Cost:     libpng's own.
//
// Errors are DataLoss: "PNG data is damaged: ...", with libpng's words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

inline constexpr int kPngSideMax = 16384;
inline constexpr int64_t kPngPixelsMax = int64_t{64} << 20;

struct PngOptions {
  int channels = 0;   // 1: grey, 3: RGB, 4: RGB and alpha, 0: as in the image (2: grey and alpha)
  bool wide = false;  // 16 bits a sample in the machine's byte order, instead of 8
};

struct PngShape {
  int height = 0;
  int width = 0;
  int channels = 0;
  int sample_bytes = 1;

  size_t bytes() const { return size_t{1} * height * width * channels * sample_bytes; }
};

class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // Reads the header: what Decode() will give. `data` must stay until then. REQUIRES: called once.
  absl::StatusOr<PngShape> Start(const uint8_t* data, size_t size, const PngOptions& options);

  // Writes shape.bytes() bytes, rows from the top, channels last. On failure the pixels are
  // undefined. REQUIRES: Start() succeeded; called once.
  absl::Status Decode(uint8_t* pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
