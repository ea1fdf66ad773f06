#include <algorithm>
#include <cmath>

#include "server/expr/arguments.h"
#include "server/image/pixels.h"

namespace penstock::expr {
namespace {

float Clip(float value) { return std::min(std::max(value, 0.0f), 1.0f); }

void ToRgb(const float* in, int64_t num_pixels, int64_t, float* out) {
  for (int64_t i = 0; i < num_pixels; ++i, in += 3, out += 3) {
    const float sixths = in[0] * 6, saturation = in[1], value = in[2];
    const float grey = 1 - saturation;
    out[0] = (grey + saturation * Clip(std::fabs(sixths - 3) - 1)) * value;
    out[1] = (grey + saturation * Clip(2 - std::fabs(sixths - 2))) * value;
    out[2] = (grey + saturation * Clip(2 - std::fabs(sixths - 4))) * value;
  }
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kFloat32}), CheckPixels(arguments[0], 3)});
      !status.ok()) {
    return status;
  }
  return BindPixels(arguments[0].type, {.apply = ToRgb, .channels_in = 3});
}

const RowFunctionRegistration kRegistration({
    .name = "hsv_to_rgb",
    .signature = "hsv_to_rgb(image)",
    .doc = "The RGB image of hue, saturation and value, as tf.image.hsv_to_rgb gives it.\n"
           "\n"
           "image: float32 of shape (height, width, 3), values of 0 to 1; so is the result.\n"
           "\n"
           "TensorFlow's bytes. Another number of channels is an error of its record, or of the "
           "spec where it is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
