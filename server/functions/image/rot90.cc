#include "server/expr/arguments.h"
#include "server/image/turn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t k = 1;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0]), ReadConstant(arguments[1], "k", INT32_MIN, INT32_MAX, &k)});
      !status.ok()) {
    return status;
  }
  // Counter-clockwise: the first row of the result is the image's last column.
  constexpr Turn kTurns[] = {{},
                             {.swap_axes = true, .flip_columns = true},
                             {.flip_rows = true, .flip_columns = true},
                             {.swap_axes = true, .flip_rows = true}};
  return BindTurn(arguments[0].type, kTurns[k & 3]);
}

const RowFunctionRegistration kRegistration({
    .name = "rot90",
    .signature = "rot90(image, k=1)",
    .doc = "An image turned counter-clockwise by quarters of a circle, as tf.image.rot90 turns "
           "it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "k: how many quarters, an integer constant; negative ones turn clockwise.\n"
           "\n"
           "TensorFlow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
