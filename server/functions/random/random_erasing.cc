#include "server/expr/arguments.h"
#include "server/image/drawn.h"
#include "server/image/drawn_window.h"
#include "server/image/erase.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double probability = 0.5;
  WindowLimits limits{0.02, 0.33, 0.3, 3.3};
  PixelValue value;
  const DType dtype = arguments[0].type.dtype;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0], {DType::kUint8, DType::kInt8, DType::kUint16, DType::kInt16,
                                     DType::kInt32, DType::kFloat32, DType::kFloat64}),
           ReadConstant(arguments[1], "probability", &probability),
           ReadRange(arguments[2], "scale", 1e-6, 1, &limits.scale_low, &limits.scale_high),
           ReadRange(arguments[3], "ratio", 1e-3, 1e3, &limits.ratio_low, &limits.ratio_high),
           ReadPixelValue(arguments[4], "value", dtype, &value)});
      !status.ok()) {
    return status;
  }
  if (probability < 0 || probability > 1) {
    return WrongArgument("probability", "a constant of 0 to 1");
  }
  return BindDrawn(arguments[0].type, arguments[5],
                   [=](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
                     Window window;
                     const bool erases = draws.Unit() < probability &&
                                         TryDrawPart(limits, PartKind::kErased, draws,
                                                     image.shape[0], image.shape[1], &window);
                     if (!erases) window = Window{};
                     NoteWindow(window, draws);
                     RunErase(window, value, dtype, image, out);
                     return absl::OkStatus();
                   });
}

const RowFunctionRegistration kRegistration({
    .name = "random_erasing",
    .signature = "random_erasing(image, probability=0.5, scale=[0.02, 0.33], ratio=[0.3, 3.3], "
                 "value=0, seed=None)",
    .doc = "An image of which a rectangle is painted over, as torchvision's RandomErasing does.\n"
           "\n"
           "image: uint8, int8, uint16, int16, int32, float32 or float64 of shape (height, width, "
           "channels); the result has its dtype.\n"
           "probability: how often, a constant of 0 to 1.\n"
           "scale: [low, high], constants: the rectangle's area, as a part of the image's, is "
           "drawn evenly between them.\n"
           "ratio: [low, high], constants: its height over its width; the logarithm is drawn "
           "evenly.\n"
           "value: what stands there in all channels, a constant of the image's dtype.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "Ten times a rectangle is drawn; the first that is smaller than the image in both "
           "directions is taken, else nothing is erased.\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
