#include "server/expr/arguments.h"
#include "server/image/augment.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t num_bins = 31;
  if (const absl::Status status =
          FirstError({CheckAugmentImage(arguments[0]),
                      ReadConstant(arguments[1], "num_magnitude_bins", 2, 1000, &num_bins)});
      !status.ok()) {
    return status;
  }
  return BindAugment(
      arguments[0], arguments[2], arguments[3], arguments[4],
      [=](Draws& draws, int64_t height, int64_t width) -> std::vector<AugmentStep> {
        const auto op = static_cast<AugmentOp>(draws.Below(kNumDrawnOps));
        const auto bin = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(num_bins)));
        const bool negative = HasSign(op) && draws.Below(2) == 1;
        const double size = MagnitudeOf(op, kTrivialSpace, bin, num_bins, height, width);
        return {{op, negative ? -size : size}};
      });
}

const RowFunctionRegistration kRegistration({
    .name = "trivial_augment_wide",
    .signature =
        "trivial_augment_wide(image, num_magnitude_bins=31, method=\"nearest\", fill=0, seed=None)",
    .doc = "One operation, drawn from 14, of a strength that is drawn: TrivialAugment (arXiv "
           "2103.10158), its wide space, as torchvision does it to Pillow's images.\n"
           "\n"
           "image: uint8 of shape (height, width, channels), of one or three channels; the result "
           "has its type.\n"
           "num_magnitude_bins: into how many steps the range of each operation is divided, a "
           "constant of 2 to 1000; all are equally likely.\n"
           "method: \"nearest\", \"bilinear\" or \"bicubic\", a constant.\n"
           "fill: what stands where nothing of the image is, in all channels, a constant of the "
           "image's dtype.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The operations are those of rand_augment, which go further here. Each gives "
           "torchvision's bytes.\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
