// Encodes PNG images through libpng, with the arguments of tf.io.encode_png.
//
// Threads:  safe from any thread.
// Limits:   sides of 1 to kPngWriteSideMax pixels, 1 to 4 channels of 8 or 16 bits.
// Cost:     libpng's own.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace penstock {

inline constexpr int64_t kPngWriteSideMax = 1'000'000;  // libpng's own limit

// `samples`: rows from the top, channels last (1: grey, 2: grey and alpha, 3: RGB, 4: RGB and
// alpha), each of `sample_bytes` 1, or 2 in the machine's byte order. `compression`: zlib's level,
// -1 for its default. InvalidArgument for sizes beyond the limits.
absl::StatusOr<std::string> EncodePng(const uint8_t* samples, int64_t height, int64_t width,
                                      int64_t channels, int sample_bytes, int compression);

}  // namespace penstock
