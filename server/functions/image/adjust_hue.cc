#include "server/expr/arguments.h"
#include "server/image/adjust.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double delta = 0;
  if (const absl::Status status =
          FirstError({CheckPixels(arguments[0], 3), ReadConstant(arguments[1], "delta", &delta)});
      !status.ok()) {
    return status;
  }
  if (delta < -1 || delta > 1) return WrongArgument("delta", "a constant of -1 to 1");
  return BindPixels(arguments[0].type, HueMap(static_cast<float>(delta)));
}

const RowFunctionRegistration kRegistration({
    .name = "adjust_hue",
    .signature = "adjust_hue(image, delta)",
    .doc = "An RGB image with its hue turned, as tf.image.adjust_hue does.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, 3); the result "
           "has its dtype.\n"
           "delta: a constant of -1 to 1, in turns of the circle of hues.\n"
           "\n"
           "TensorFlow's bytes. Another number of channels is an error of its record, or of the "
           "spec where it is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
