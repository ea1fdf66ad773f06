#include "server/expr/arguments.h"
#include "server/image/adjust.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double most = 0;
  if (const absl::Status status =
          FirstError({CheckPixels(arguments[0]), ReadConstant(arguments[1], "max_delta", &most)});
      !status.ok()) {
    return status;
  }
  if (most < 0) return WrongArgument("max_delta", "a constant of at least 0");
  return BindDrawnPixels(arguments[0].type, arguments[2], 0, [most](Draws& draws) {
    const double delta = draws.Between(-most, most);
    draws.Note("delta", delta);
    return BrightnessMap(static_cast<float>(delta));
  });
}

const RowFunctionRegistration kRegistration({
    .name = "random_brightness",
    .signature = "random_brightness(image, max_delta, seed=None)",
    .doc =
        "adjust_brightness by a delta that is drawn, as tf.image.random_brightness does.\n"
        "\n"
        "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels); the "
        "result "
        "has its dtype.\n"
        "max_delta: a constant of at least 0; delta is drawn evenly from -max_delta to max_delta.\n"
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
