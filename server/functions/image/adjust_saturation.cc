#include "server/expr/arguments.h"
#include "server/image/adjust.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double factor = 0;
  if (const absl::Status status = FirstError(
          {CheckPixels(arguments[0], 3), ReadConstant(arguments[1], "saturation_factor", &factor)});
      !status.ok()) {
    return status;
  }
  return BindPixels(arguments[0].type, SaturationMap(static_cast<float>(factor)));
}

const RowFunctionRegistration kRegistration({
    .name = "adjust_saturation",
    .signature = "adjust_saturation(image, saturation_factor)",
    .doc = "An RGB image with its saturation multiplied, as tf.image.adjust_saturation does.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, 3); the result "
           "has its dtype.\n"
           "saturation_factor: a constant; the product is clipped to 0 to 1.\n"
           "\n"
           "TensorFlow's bytes. Another number of channels is an error of its record, or of the "
           "spec where it is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
