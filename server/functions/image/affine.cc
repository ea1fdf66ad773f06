#include "server/image/affine.h"
#include "server/expr/arguments.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const DType dtype = arguments[0].type.dtype;
  AffineMatrix matrix = {};
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
                      ReadNumbers(arguments[1], "matrix", absl::MakeSpan(matrix))});
      !status.ok()) {
    return status;
  }
  const auto options = ReadAffineOptions(arguments[2], arguments[3], dtype);
  if (!options.ok()) return options.status();
  return BindRows(arguments[0].type, [=, options = *options](const ImageView& image, Arena&) {
    return StartAffine(matrix, options, dtype, image);
  });
}

const RowFunctionRegistration kRegistration({
    .name = "affine",
    .signature = "affine(image, matrix, method=\"nearest\", fill=0)",
    .doc = "An image whose pixels show other places of it, as Pillow's Image.transform with "
           "Transform.AFFINE takes them.\n"
           "\n"
           "image: uint8 or float32 of shape (height, width, channels); the result has its type.\n"
           "matrix: [a, b, c, d, e, f], constants: the pixel whose middle is (x, y) shows the "
           "place (a x + b y + c, d x + e y + f).\n"
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
