#include "server/expr/arguments.h"
#include "server/image/blur.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t size = 1;
  double low = 0.1, high = 2.0, probability = 1;
  const DType dtype = arguments[0].type.dtype;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
                      ReadConstant(arguments[1], "kernel_size", 1, 501, &size),
                      ReadRange(arguments[2], "sigma", 1e-6, 1e6, &low, &high),
                      ReadConstant(arguments[3], "probability", &probability)});
      !status.ok()) {
    return status;
  }
  if (size % 2 == 0) return WrongArgument("kernel_size", "an odd constant");
  if (const Shape& shape = arguments[0].type.shape; NumElements(shape).has_value()) {
    const absl::Status status = CheckBlur({nullptr, shape[0], shape[1], shape[2]}, size);
    if (!status.ok()) return absl::InvalidArgumentError(status.message());
  }
  if (probability < 0 || probability > 1)
    return WrongArgument("probability", "a constant of 0 to 1");
  return BindDrawn(
      arguments[0].type, arguments[4],
      [=](Draws& draws, const RowValue& row, Arena& scratch, RowOutput& out) -> absl::Status {
        const ImageView image = ViewOf(dtype, row);
        if (image.row_bytes() == 0 || image.height == 0) return absl::OkStatus();
        if (absl::Status status = CheckBlur(image, size); !status.ok()) return status;
        const bool blurs = draws.Unit() < probability;
        const double sigma = draws.Between(low, high);
        draws.Note("sigma", blurs ? sigma : 0);
        WriteRows(image,
                  blurs ? StartBlur(GaussianWeights(size, sigma), dtype, image, scratch)
                        : StartCopy(image),
                  out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "random_gaussian_blur",
    .signature =
        "random_gaussian_blur(image, kernel_size, sigma=[0.1, 2], probability=1, seed=None)",
    .doc = "gaussian_blur by a width that is drawn, as torchvision's GaussianBlur draws it.\n"
           "\n"
           "image: uint8 or float32 of shape (height, width, channels); the result has its type.\n"
           "kernel_size: how many pixels are weighed in each direction, an odd constant of 1 to "
           "501; the image must be longer than its half.\n"
           "sigma: [low, high], constants above 0: the standard deviation in pixels is drawn "
           "evenly between them.\n"
           "probability: how often an image is blurred, a constant of 0 to 1.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "Beyond its edges the image goes on mirrored. The weights are float32's, a value is "
           "rounded to the nearest integer: in rare places by\n"
           "1 from torchvision's, floats by some 1e-6.\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
