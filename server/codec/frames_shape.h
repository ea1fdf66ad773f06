// What the decoders of images with several frames (GIF, WebP) tell of a file before they decode it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

struct FramesShape {
  int64_t frames = 0;
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  size_t bytes() const { return static_cast<size_t>(frames * height * width * channels); }
};

}  // namespace penstock
