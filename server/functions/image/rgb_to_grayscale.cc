#include "server/expr/arguments.h"
#include "server/image/pixels.h"

namespace penstock::expr {
namespace {

void ToGrey(const float* in, int64_t num_pixels, int64_t, float* out) {
  for (int64_t i = 0; i < num_pixels; ++i, in += 3) {
    out[i] = in[0] * 0.2989f + in[1] * 0.5870f + in[2] * 0.1140f;
  }
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status = CheckPixels(arguments[0], 3); !status.ok()) return status;
  return BindPixels(arguments[0].type, {.apply = ToGrey, .channels_in = 3, .channels_out = 1});
}

const RowFunctionRegistration kRegistration({
    .name = "rgb_to_grayscale",
    .signature = "rgb_to_grayscale(image)",
    .doc = "An RGB image in grey, as tf.image.rgb_to_grayscale gives it: 0.2989 R + 0.587 G + "
           "0.114 B.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, 3); the result "
           "is (height, width, 1) and has its dtype.\n"
           "\n"
           "TensorFlow's bytes. Another number of channels is an error of its "
           "record, or of the spec where it is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
