#include "server/expr/arguments.h"
#include "server/image/adjust.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double lower = 0, upper = 0;
  if (const absl::Status status = FirstError(
          {CheckPixels(arguments[0]), ReadBounds(arguments[1], arguments[2], &lower, &upper)});
      !status.ok()) {
    return status;
  }
  const auto draw = [lower, upper](Draws& draws) {
    const double gamma = draws.Between(lower, upper);
    draws.Note("gamma", gamma);
    return GammaMap(static_cast<float>(gamma), 1);
  };
  if (arguments[0].type.dtype != DType::kUint8) {
    return BindDrawnPixels(arguments[0].type, arguments[3], 0, draw);
  }
  return BindDrawn(arguments[0].type, arguments[3],
                   [draw](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
                     RunTable(TableOf(draw(draws)), image, out);
                     return absl::OkStatus();
                   });
}

const RowFunctionRegistration kRegistration({
    .name = "random_gamma",
    .signature = "random_gamma(image, lower, upper, seed=None)",
    .doc = "adjust_gamma by a gamma that is drawn; gain is 1.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels); the "
           "result "
           "has its dtype.\n"
           "lower, upper: constants, 0 <= lower < upper; gamma is drawn evenly between them.\n"
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
