#include "server/expr/arguments.h"
#include "server/image/adjust.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double delta = 0;
  if (const absl::Status status =
          FirstError({CheckPixels(arguments[0]), ReadConstant(arguments[1], "delta", &delta)});
      !status.ok()) {
    return status;
  }
  return BindPixels(arguments[0].type, BrightnessMap(static_cast<float>(delta)));
}

const RowFunctionRegistration kRegistration({
    .name = "adjust_brightness",
    .signature = "adjust_brightness(image, delta)",
    .doc = "An image made brighter or darker, as tf.image.adjust_brightness does.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels); the "
           "result has its dtype.\n"
           "delta: is added to each value, a constant; integers count as values of 0 to 1 (the "
           "greatest), and are clipped.\n"
           "\n"
           "TensorFlow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
