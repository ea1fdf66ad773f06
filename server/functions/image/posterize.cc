#include "server/expr/arguments.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t bits = 8;
  if (const absl::Status status = FirstError({CheckImage(arguments[0], {DType::kUint8}),
                                              ReadConstant(arguments[1], "bits", 0, 8, &bits)});
      !status.ok()) {
    return status;
  }
  return BindRows(arguments[0].type,
                  [bits](const ImageView& image, Arena&) { return StartPosterize(bits, image); });
}

const RowFunctionRegistration kRegistration({
    .name = "posterize",
    .signature = "posterize(image, bits)",
    .doc =
        "The highest bits of each value, the others 0, as Pillow's ImageOps.posterize keeps them.\n"
        "\n"
        "image: uint8 of shape (height, width, channels); the result has its type.\n"
        "bits: how many, a constant of 0 to 8.\n"
        "\n"
        "Pillow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
