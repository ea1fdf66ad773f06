// Encodes JPEG images through libjpeg-turbo, with the arguments of tf.io.encode_jpeg.
//
// Threads:  safe from any thread.
// Owns:     nothing after the call.
// Limits:   sides of 1 to kJpegWriteSideMax pixels, 1 or 3 channels.
// Cost:     libjpeg's own, and one copy of the file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

inline constexpr int64_t kJpegWriteSideMax = 65500;

struct JpegWriteOptions {
  int quality = 95;  // 0 to 100
  bool progressive = false;
  bool optimize_size = false;       // a second pass for a smaller file
  bool chroma_downsampling = true;  // 4:2:0 instead of 4:4:4
};

// `pixels`: rows from the top, channels last. InvalidArgument for sizes beyond the limits.
absl::StatusOr<std::string> EncodeJpeg(const uint8_t* pixels, int64_t height, int64_t width,
                                       int64_t channels, const JpegWriteOptions& options);

}  // namespace penstock
