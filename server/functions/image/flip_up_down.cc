#include "server/expr/arguments.h"
#include "server/image/turn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status = CheckImage(arguments[0]); !status.ok()) return status;
  return BindTurn(arguments[0].type, {.flip_rows = true});
}

const RowFunctionRegistration kRegistration({
    .name = "flip_up_down",
    .signature = "flip_up_down(image)",
    .doc = "An image with its rows in reverse, as tf.image.flip_up_down gives it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "\n"
           "TensorFlow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
