#include "server/expr/arguments.h"
#include "server/image/adjust.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double lower = 0, upper = 0;
  if (const absl::Status status = FirstError(
          {CheckPixels(arguments[0], 3), ReadBounds(arguments[1], arguments[2], &lower, &upper)});
      !status.ok()) {
    return status;
  }
  return BindDrawnPixels(arguments[0].type, arguments[3], 3, [lower, upper](Draws& draws) {
    const double factor = draws.Between(lower, upper);
    draws.Note("factor", factor);
    return SaturationMap(static_cast<float>(factor));
  });
}

const RowFunctionRegistration kRegistration({
    .name = "random_saturation",
    .signature = "random_saturation(image, lower, upper, seed=None)",
    .doc = "adjust_saturation by a factor that is drawn, as tf.image.random_saturation does.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, 3); the result "
           "has its dtype.\n"
           "lower, upper: constants, 0 <= lower < upper; the factor is drawn evenly between them.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
