#include "server/expr/arguments.h"
#include "server/image/blur.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t size = 1;
  double sigma = 0;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
                      ReadConstant(arguments[1], "kernel_size", 1, 501, &size),
                      ReadConstant(arguments[2], "sigma", &sigma)});
      !status.ok()) {
    return status;
  }
  if (size % 2 == 0) return WrongArgument("kernel_size", "an odd constant");
  if (const Shape& shape = arguments[0].type.shape; NumElements(shape).has_value()) {
    const absl::Status status = CheckBlur({nullptr, shape[0], shape[1], shape[2]}, size);
    if (!status.ok()) return absl::InvalidArgumentError(status.message());
  }
  if (!arguments[2].given) sigma = 0.3 * (static_cast<double>(size - 1) * 0.5 - 1) + 0.8;
  if (sigma <= 0) return WrongArgument("sigma", "a constant above 0");
  return BindRows(arguments[0].type,
                  [size, dtype = arguments[0].type.dtype, weights = GaussianWeights(size, sigma)](
                      const ImageView& image, Arena& scratch) -> absl::StatusOr<NextRows> {
                    if (absl::Status status = CheckBlur(image, size); !status.ok()) return status;
                    return StartBlur(weights, dtype, image, scratch);
                  });
}

const RowFunctionRegistration kRegistration({
    .name = "gaussian_blur",
    .signature = "gaussian_blur(image, kernel_size, sigma=None)",
    .doc = "An image blurred as torchvision's gaussian_blur does it.\n"
           "\n"
           "image: uint8 or float32 of shape (height, width, channels); the result has its type.\n"
           "kernel_size: how many pixels are weighed in each direction, an odd constant of 1 to "
           "501; the image must be longer than its half.\n"
           "sigma: the standard deviation in pixels, a constant above 0; 0.3 ((kernel_size - 1) / "
           "2 - 1) + 0.8 if it is left out.\n"
           "\n"
           "Beyond its edges the image goes on mirrored. The weights are float32's, a value is "
           "rounded to the nearest integer: in rare places by\n"
           "1 from torchvision's, floats by some 1e-6.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
