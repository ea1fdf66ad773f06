#include "server/expr/arguments.h"
#include "server/image/affine.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const DType dtype = arguments[0].type.dtype;
  double low = 0, high = 0;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
                      ReadRange(arguments[1], "degrees", -360, 360, &low, &high)});
      !status.ok()) {
    return status;
  }
  const auto options = ReadAffineOptions(arguments[2], arguments[3], dtype);
  if (!options.ok()) return options.status();
  return BindDrawn(
      arguments[0].type, arguments[4],
      [=, options = *options](Draws& draws, const RowValue& row, Arena&, RowOutput& out) {
        const ImageView image = ViewOf(dtype, row);
        const double angle = draws.Between(low, high);
        draws.Note("angle", angle);
        const AffineMatrix matrix = RotationMatrix(angle, image.height, image.width);
        WriteRows(image, StartAffine(matrix, options, dtype, image), out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "random_rotation",
    .signature = "random_rotation(image, degrees, method=\"nearest\", fill=0, seed=None)",
    .doc =
        "rotate by an angle that is drawn, as torchvision's RandomRotation draws it.\n"
        "\n"
        "image: uint8 or float32 of shape (height, width, channels); the result has its type.\n"
        "degrees: [low, high], constants of -360 to 360; the angle is drawn evenly between them.\n"
        "method: \"nearest\", \"bilinear\" or \"bicubic\", a constant.\n"
        "fill: what stands where nothing of the image is, in all channels, a constant of the "
        "image's dtype.\n"
        "seed: an integer constant; drawn when the pipeline is made and written into its spec, if "
        "it is left out.\n"
        "\n"
        "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
        "record, on nothing else.\n"
        "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
