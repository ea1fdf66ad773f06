#include "server/expr/arguments.h"
#include "server/image/drawn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status = CheckImage(arguments[0]); !status.ok()) return status;
  return BindDrawnTurn(arguments[0].type, arguments[1], {.flip_rows = true});
}

const RowFunctionRegistration kRegistration({
    .name = "random_flip_up_down",
    .signature = "random_flip_up_down(image, seed=None)",
    .doc = "An image, its rows in reverse with a probability of one half, as "
           "tf.image.random_flip_up_down "
           "does.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
