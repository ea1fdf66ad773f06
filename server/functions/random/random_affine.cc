#include <cmath>

#include "server/expr/arguments.h"
#include "server/image/affine.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

// What is drawn evenly.
struct Limits {
  double degrees[2] = {0, 0};
  double translate[2] = {0, 0};  // parts of the width and the height
  double scale[2] = {1, 1};
  double shear[2] = {0, 0};  // degrees
};

// Whole pixels to either side, at most that part of `side`.
double DrawShift(double part, int64_t side, Draws& draws) {
  const double most = part * static_cast<double>(side);
  return std::nearbyint(draws.Between(-most, most));
}

Movement DrawMovement(const Limits& limits, const ImageView& image, Draws& draws) {
  Movement movement;
  movement.degrees = draws.Between(limits.degrees[0], limits.degrees[1]);
  movement.translate_x = DrawShift(limits.translate[0], image.width, draws);
  movement.translate_y = DrawShift(limits.translate[1], image.height, draws);
  movement.scale = draws.Between(limits.scale[0], limits.scale[1]);
  movement.shear_x_degrees = draws.Between(limits.shear[0], limits.shear[1]);
  draws.Note("degrees", movement.degrees);
  draws.Note("translate_x", movement.translate_x);
  draws.Note("translate_y", movement.translate_y);
  draws.Note("scale", movement.scale);
  draws.Note("shear", movement.shear_x_degrees);
  return movement;
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const DType dtype = arguments[0].type.dtype;
  Limits limits;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0], {DType::kUint8, DType::kFloat32}),
           ReadRange(arguments[1], "degrees", -360, 360, &limits.degrees[0], &limits.degrees[1]),
           ReadNumbers(arguments[2], "translate", absl::MakeSpan(limits.translate)),
           ReadRange(arguments[3], "scale", 1e-3, 1e3, &limits.scale[0], &limits.scale[1]),
           ReadRange(arguments[4], "shear", -89, 89, &limits.shear[0], &limits.shear[1])});
      !status.ok()) {
    return status;
  }
  for (const double part : limits.translate) {
    if (part < 0 || part > 1)
      return WrongArgument("translate", "[horizontal, vertical], constants of 0 to 1");
  }
  const auto options = ReadAffineOptions(arguments[5], arguments[6], dtype);
  if (!options.ok()) return options.status();
  return BindDrawn(
      arguments[0].type, arguments[7],
      [=, options = *options](Draws& draws, const RowValue& row, Arena&, RowOutput& out) {
        const ImageView image = ViewOf(dtype, row);
        const AffineMatrix matrix =
            MovementMatrix(DrawMovement(limits, image, draws), image.height, image.width);
        WriteRows(image, StartAffine(matrix, options, dtype, image), out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "random_affine",
    .signature = "random_affine(image, degrees, translate=[0, 0], scale=[1, 1], shear=[0, 0], "
                 "method=\"nearest\", fill=0, seed=None)",
    .doc = "An image turned, moved, scaled and sheared around its middle by what is drawn, as "
           "torchvision's RandomAffine does it.\n"
           "\n"
           "image: uint8 or float32 of shape (height, width, channels); the result has its type.\n"
           "degrees: [low, high], constants of -360 to 360: how far it is turned, clockwise.\n"
           "translate: [horizontal, vertical], constants of 0 to 1: it is moved by whole pixels, "
           "at most by these parts of its width and height, to either side.\n"
           "scale: [low, high], constants of 0.001 to 1000.\n"
           "shear: [low, high], constants of -89 to 89: degrees along its rows.\n"
           "method: \"nearest\", \"bilinear\" or \"bicubic\", a constant.\n"
           "fill: what stands where nothing of the image is, in all channels, a constant of the "
           "image's dtype.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "All are drawn evenly between their limits.\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
