// Pixels between pixels: what stands at places inside of an image, by two or four pixels in each
// direction.
//
// Computed in float64 in Pillow's order, and the fraction dropped; the bits are the same on every
// instruction set.
//
// Threads:  pure.
// Limits:   uint8, of three or four channels. The pixels around a place lie inside of the image,
//           and none of them is its last one. One byte behind the result of three channels may be
//           overwritten.
// Cost:     3 ns a pixel, by four in each direction 10.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

struct PixelGrid {
  const uint8_t* pixels = nullptr;
  size_t row_bytes = 0;
  size_t channels = 0;

  const uint8_t* At(int64_t row, int64_t column) const {
    return pixels + static_cast<size_t>(row) * row_bytes + static_cast<size_t>(column) * channels;
  }
};

// Places in a row, in the order in which their coordinates are added up and rounded: (0, 0) is the
// middle of the first pixel.
struct PixelLine {
  double step_x = 0, row_x = 0, start_x = 0;
  double step_y = 0, row_y = 0, start_y = 0;

  double X(int64_t index) const {
    return step_x * (static_cast<double>(index) + 0.5) + row_x + start_x - 0.5;
  }
  double Y(int64_t index) const {
    return step_y * (static_cast<double>(index) + 0.5) + row_y + start_y - 0.5;
  }
};

// out: what stands at the places [first, end) of `line`.
void MixBilinear(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                 uint8_t* out);
void MixBicubic(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                uint8_t* out);

// The twins, which define the bytes, for any number of channels; they touch nothing else.
void MixBilinearScalar(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                       uint8_t* out);
void MixBicubicScalar(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                      uint8_t* out);

}  // namespace penstock::kernels
