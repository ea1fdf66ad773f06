#include "server/expr/arguments.h"
#include "server/image/tone.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status = CheckImage(arguments[0], {DType::kUint8}); !status.ok())
    return status;
  return BindRows(arguments[0].type,
                  [](const ImageView& image, Arena&) -> absl::StatusOr<NextRows> {
                    if (absl::Status status = CheckHistograms(image); !status.ok()) return status;
                    return StartEqualize(image);
                  });
}

const RowFunctionRegistration kRegistration({
    .name = "equalize",
    .signature = "equalize(image)",
    .doc = "An image whose values are spread so that all are about equally frequent, each channel "
           "by itself, as Pillow's ImageOps.equalize does it.\n"
           "\n"
           "image: uint8 of shape (height, width, channels); the result has its type.\n"
           "\n"
           "Pillow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
