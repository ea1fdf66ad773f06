#include "server/expr/arguments.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double threshold = 128;
  if (const absl::Status status = FirstError({CheckImage(arguments[0], {DType::kUint8}),
                                              ReadConstant(arguments[1], "threshold", &threshold)});
      !status.ok()) {
    return status;
  }
  return BindRows(arguments[0].type, [threshold](const ImageView& image, Arena&) {
    return StartSolarize(threshold, image);
  });
}

const RowFunctionRegistration kRegistration({
    .name = "solarize",
    .signature = "solarize(image, threshold=128)",
    .doc = "255 minus each value that is at least the threshold, the others as they are, as "
           "Pillow's ImageOps.solarize does it.\n"
           "\n"
           "image: uint8 of shape (height, width, channels); the result has its type.\n"
           "threshold: a constant; 0 inverts all values, 256 none.\n"
           "\n"
           "Pillow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
