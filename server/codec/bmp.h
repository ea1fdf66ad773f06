// Decodes BMP images to interleaved samples of 8 bits, with the verdict and the pixels of
// TensorFlow's decode_bmp.
//
// Like that it reads little of the header: where the pixels begin, the sides, and the bits of a
// pixel, of which whole bytes count. A pixel of one byte is a grey value, whatever palette there
// is; the compression field is not looked at. A negative height says that the first row is the
// upper one.
//
// Threads:  one decoder, one thread.
// Owns:     nothing; the file must stay until Decode().
// Limits:   the file is exactly as long as its header says, so that an image is at most four times
//           its file.
// Cost:     one pass.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock {

struct BmpOptions {
  int channels = 0;  // 3, 4, or 0: as many as the file has
};

struct BmpShape {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  size_t bytes() const { return static_cast<size_t>(height * width * channels); }
};

class BmpDecoder {
 public:
  // DataLoss when this is no BMP image that can be decoded.
  absl::StatusOr<BmpShape> Start(const uint8_t* file, size_t size, const BmpOptions& options);

  // Writes shape.bytes() bytes. REQUIRES: Start().
  absl::Status Decode(uint8_t* pixels) const;

 private:
  const uint8_t* rows_ = nullptr;
  size_t row_bytes_ = 0;
  int64_t channels_ = 0;  // of the file
  bool is_upward_ = false;
  BmpShape shape_;
};

}  // namespace penstock
