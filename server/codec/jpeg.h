// Decodes JPEG images to 8-bit pixels through libjpeg-turbo, with the arguments, the pixels and the
// verdicts of tf.io.decode_jpeg.
//
// Threads:  one thread at a time.
// Owns:     libjpeg's state, which may be used for one image after another; never the data.
// Limits:   kJpegSideMax pixels a side, kJpegPixelsMax in all (before scaling), checked before
//           anything of the image's size is allocated; kJpegScansMax scans; 8 bits a sample.
// Cost:     libjpeg's own; making a decoder is below a microsecond.
//
// EXIF orientation is ignored unless it is asked for. CMYK and YCCK become RGB by ink times black
// over 255, in integers.
//
// Errors are DataLoss: data that ends before its end marker ("JPEG data is cut: ..."), that is no
// JPEG, or that libjpeg cannot go on decoding. Damage inside an entropy-coded segment behind which
// libjpeg finds its way again is no error, as in TensorFlow; record checksums are what guards
// against it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

inline constexpr int kJpegSideMax = 16384;
inline constexpr int64_t kJpegPixelsMax = int64_t{64} << 20;
inline constexpr int kJpegScansMax = 256;

struct JpegOptions {
  int channels = 0;             // 1: grey, 3: RGB, 0: as in the image, at most 3
  int ratio = 1;                // 1, 2, 4 or 8: each side is divided by it, rounded up
  bool fancy_upscaling = true;  // smooth instead of repeated chroma
  bool accurate_dct = false;    // the accurate integer DCT instead of the fast one
  // Data that ends too early is no error once the header is there: what is missing is as libjpeg
  // leaves it, grey or of the scans before.
  bool recover_truncated = false;
  bool upright = false;  // turned as the file's EXIF data tells
};

// In pixels of the image.
struct JpegWindow {
  int top = 0;
  int left = 0;
  int height = 0;
  int width = 0;
};

struct JpegShape {
  int height = 0;
  int width = 0;
  int channels = 0;  // 1 or 3

  size_t bytes() const { return size_t{1} * height * width * channels; }
};

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header: what Decode() will give. `data` must stay until Decode() or the next Start().
  absl::StatusOr<JpegShape> Start(const uint8_t* data, size_t size, const JpegOptions& options);

  // Writes the image that Start() announced: shape.bytes() bytes, rows from the top, channels last.
  // On failure the pixels are undefined. REQUIRES: Start() succeeded and Decode() was not called
  // since.
  absl::Status Decode(uint8_t* pixels);

  // Writes a part of that image, its rows one behind another: the pixels of Decode(). Transformed
  // is only what the window and its surroundings of a block need, and what lies below it is not
  // looked at, so that damage there is not met. Of an image without an end marker, of inks, or with
  // a ratio, the whole is decoded. REQUIRES: as Decode(); the window lies inside of the image.
  absl::Status DecodeWindow(const JpegWindow& window, uint8_t* pixels);

  // Whether the image may be had a few rows at a time, by ReadRows() in the place of Decode(). Not
  // so of inks, and of what is turned upright. REQUIRES: as Decode().
  bool has_rows() const;

  // Writes the next `count` rows of that image, at first those at its top: the bytes of Decode().
  // The last ones come with its verdict on what is behind them. On failure the pixels are
  // undefined, and there are no more. REQUIRES: has_rows(); so many are left.
  absl::Status ReadRows(int count, uint8_t* pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace penstock
