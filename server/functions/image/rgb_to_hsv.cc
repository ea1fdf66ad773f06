#include <algorithm>

#include "server/expr/arguments.h"
#include "server/image/pixels.h"

namespace penstock::expr {
namespace {

void ToHsv(const float* in, int64_t num_pixels, int64_t, float* out) {
  for (int64_t i = 0; i < num_pixels; ++i, in += 3, out += 3) {
    const float r = in[0], g = in[1], b = in[2];
    const float value = std::max(r, std::max(g, b));
    const float range = value - std::min(r, std::min(g, b));
    float hue = 0;
    if (range > 0) {
      const float norm = 1 / range * (1.0f / 6.0f);
      if (r == value) {
        hue = norm * (g - b);
      } else if (g == value) {
        hue = norm * (b - r) + 2.0f / 6.0f;
      } else {
        hue = norm * (r - g) + 4.0f / 6.0f;
      }
      if (hue < 0) hue += 1;
    }
    out[0] = hue;
    out[1] = value > 0 ? range / value : 0;
    out[2] = value;
  }
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kFloat32}), CheckPixels(arguments[0], 3)});
      !status.ok()) {
    return status;
  }
  return BindPixels(arguments[0].type, {.apply = ToHsv, .channels_in = 3});
}

const RowFunctionRegistration kRegistration({
    .name = "rgb_to_hsv",
    .signature = "rgb_to_hsv(image)",
    .doc = "Hue, saturation and value of an RGB image, as tf.image.rgb_to_hsv gives them.\n"
           "\n"
           "image: float32 of shape (height, width, 3), values of 0 to 1; so is the result.\n"
           "\n"
           "TensorFlow's bytes. Another number of channels is an error of its record, or of the "
           "spec where it "
           "is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
