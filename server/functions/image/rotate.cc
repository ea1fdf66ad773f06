#include "server/expr/arguments.h"
#include "server/image/affine.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const DType dtype = arguments[0].type.dtype;
  double angle = 0;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
                      ReadConstant(arguments[1], "angle", &angle)});
      !status.ok()) {
    return status;
  }
  const auto options = ReadAffineOptions(arguments[2], arguments[3], dtype);
  if (!options.ok()) return options.status();
  return BindRows(arguments[0].type, [=, options = *options](const ImageView& image, Arena&) {
    return StartAffine(RotationMatrix(angle, image.height, image.width), options, dtype, image);
  });
}

const RowFunctionRegistration kRegistration({
    .name = "rotate",
    .signature = "rotate(image, angle, method=\"nearest\", fill=0)",
    .doc = "An image turned around its middle, as Pillow's Image.rotate and torchvision's rotate "
           "turn it: of the same size, what leaves it is cut off.\n"
           "\n"
           "image: uint8 or float32 of shape (height, width, channels); the result has its type.\n"
           "angle: degrees, counter-clockwise, a constant.\n"
           "method: \"nearest\", \"bilinear\" or \"bicubic\", a constant.\n"
           "fill: what stands where nothing of the image is, in all channels, a constant of the "
           "image's dtype.\n"
           "\n"
           "Pillow's bytes, of float32 those of its images of mode F. Each channel is taken by "
           "itself: "
           "the bytes of four channels are those of modes CMYK and RGBX,\n"
           "while Pillow multiplies the colors of RGBA by alpha first, but for \"nearest\".",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
