#include "server/expr/arguments.h"
#include "server/image/augment.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t num_ops = 2, magnitude = 9, num_bins = 31;
  // The bins come before the magnitude, whose limit they are.
  if (const absl::Status status = FirstError(
          {CheckAugmentImage(arguments[0]), ReadConstant(arguments[1], "num_ops", 0, 16, &num_ops),
           ReadConstant(arguments[3], "num_magnitude_bins", 2, 1000, &num_bins),
           ReadConstant(arguments[2], "magnitude", 0, num_bins - 1, &magnitude)});
      !status.ok()) {
    return status;
  }
  return BindAugment(arguments[0], arguments[4], arguments[5], arguments[6],
                     [=](Draws& draws, int64_t height, int64_t width) {
                       std::vector<AugmentStep> steps;
                       for (int64_t i = 0; i < num_ops; ++i) {
                         const auto op = static_cast<AugmentOp>(draws.Below(kNumDrawnOps));
                         const bool negative = HasSign(op) && draws.Below(2) == 1;
                         const double size =
                             MagnitudeOf(op, AugmentSpace(), magnitude, num_bins, height, width);
                         steps.push_back({op, negative ? -size : size});
                       }
                       return steps;
                     });
}

const RowFunctionRegistration kRegistration({
    .name = "rand_augment",
    .signature = "rand_augment(image, num_ops=2, magnitude=9, num_magnitude_bins=31, "
                 "method=\"nearest\", fill=0, seed=None)",
    .doc = "Some operations, drawn from 14, one after the other: RandAugment (arXiv 1909.13719) "
           "as torchvision does it to Pillow's images.\n"
           "\n"
           "image: uint8 of shape (height, width, channels), of one or three channels; the result "
           "has its type.\n"
           "num_ops: how many, a constant of 0 to 16.\n"
           "magnitude: how strong, a constant of 0 to num_magnitude_bins - 1.\n"
           "num_magnitude_bins: into how many steps the range of each operation is divided, a "
           "constant of 2 to 1000.\n"
           "method: \"nearest\", \"bilinear\" or \"bicubic\", a constant.\n"
           "fill: what stands where nothing of the image is, in all channels, a constant of the "
           "image's dtype.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The operations: none, shears and translations along rows and columns, rotation, "
           "brightness, colour, contrast, sharpness,\n"
           "posterize, solarize, autocontrast, equalize; those with two directions go either way. "
           "Each gives torchvision's bytes.\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
