#include "server/expr/arguments.h"
#include "server/image/window.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double fraction = 0;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0]), ReadConstant(arguments[1], "central_fraction", &fraction)});
      !status.ok()) {
    return status;
  }
  if (fraction <= 0 || fraction > 1) {
    return WrongArgument("central_fraction", "a constant above 0 and up to 1");
  }
  // TensorFlow's arithmetic, in float64: (size - size * fraction) / 2, its fraction dropped.
  const auto start = [fraction](int64_t size) {
    const auto side = static_cast<double>(size);
    return static_cast<int64_t>((side - side * fraction) / 2);
  };
  return BindWindow(
      arguments[0].type, kUnknownSize, kUnknownSize,
      [start](int64_t height, int64_t width, absl::Span<const int64_t>) -> absl::StatusOr<Window> {
        const int64_t top = start(height), left = start(width);
        return Window{top, left, height - 2 * top, width - 2 * left};
      });
}

const RowFunctionRegistration kRegistration({
    .name = "central_crop",
    .signature = "central_crop(image, central_fraction)",
    .doc = "The middle of an image, as tf.image.central_crop gives it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "central_fraction: a constant above 0 and up to 1: how much of each side is kept. What "
           "is cut off at each end is\n"
           "(side - side * central_fraction) / 2 in float64, rounded down.\n"
           "\n"
           "TensorFlow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
