#include "server/expr/arguments.h"
#include "server/image/turn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status = CheckImage(arguments[0]); !status.ok()) return status;
  return BindTurn(arguments[0].type, {.swap_axes = true});
}

const RowFunctionRegistration kRegistration({
    .name = "image_transpose",
    .signature = "image_transpose(image)",
    .doc = "An image with rows and columns exchanged, as tf.image.transpose gives it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "\n"
           "TensorFlow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
