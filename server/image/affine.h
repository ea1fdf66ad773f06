// Images turned, sheared, moved and scaled: each pixel of the result shows a place of the image
// that an affine map tells, as Pillow's Image.transform takes it.
//
// Threads:  safe from any thread.
// Limits:   uint8 and float32, of any number of channels.
// Cost:     nearest some 2 ns a pixel, bilinear 3 to 6, bicubic 20.
#pragma once

#include <array>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/image/erase.h"
#include "server/image/row_source.h"

namespace penstock::expr {

// The pixel whose middle is (x, y) shows the image at (m[0] x + m[1] y + m[2], m[3] x + m[4] y +
// m[5]); pixel 0 reaches from 0 to 1.
using AffineMatrix = std::array<double, 6>;

enum class Interpolation : uint8_t { kNearest, kBilinear, kBicubic };

// What all functions of this kind are told.
struct AffineOptions {
  Interpolation interpolation = Interpolation::kNearest;
  PixelValue fill;  // what stands where the place is outside of the image
};

// Reads `method` and `fill`.
absl::StatusOr<AffineOptions> ReadAffineOptions(const Argument& method, const Argument& fill,
                                                DType dtype);

// Turned counter-clockwise around the image's middle, as Image.rotate of Pillow does it without
// `expand`.
AffineMatrix RotationMatrix(double degrees, int64_t height, int64_t width);

// What is to be done to an image, around its middle: it is sheared along its rows (pixels at the
// bottom to the left) and its columns, scaled, turned clockwise, and moved to the right and down,
// in pixels.
struct Movement {
  double degrees = 0;
  double translate_x = 0;
  double translate_y = 0;
  double scale = 1;
  double shear_x_degrees = 0;
  double shear_y_degrees = 0;
};

// Its map, as torchvision's functional.affine makes it.
AffineMatrix MovementMatrix(const Movement& movement, int64_t height, int64_t width);

NextRows StartAffine(const AffineMatrix& matrix, const AffineOptions& options, DType dtype,
                     const ImageView& image);

}  // namespace penstock::expr
