#include "server/expr/arguments.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double factor = 1;
  if (const absl::Status status = FirstError({CheckImage(arguments[0], {DType::kUint8}),
                                              ReadConstant(arguments[1], "factor", &factor)});
      !status.ok()) {
    return status;
  }
  return BindRows(arguments[0].type, [factor](const ImageView& image, Arena& scratch) {
    return StartSharpness(static_cast<float>(factor), image, scratch);
  });
}

const RowFunctionRegistration kRegistration({
    .name = "adjust_sharpness",
    .signature = "adjust_sharpness(image, factor)",
    .doc = "An image between its smoothed form (0) and itself (1), or beyond it, as Pillow's "
           "ImageEnhance.Sharpness and torchvision's adjust_sharpness make it.\n"
           "\n"
           "image: uint8 of shape (height, width, channels); the result has its type.\n"
           "factor: a constant.\n"
           "\n"
           "A value is smoothed with its eight neighbours; those at the edges stay as they are.\n"
           "Pillow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
