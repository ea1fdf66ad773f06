#include "server/expr/arguments.h"
#include "server/image/drawn.h"
#include "server/image/turn.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  if (const absl::Status status = CheckImage(arguments[0]); !status.ok()) return status;
  const DType dtype = arguments[0].type.dtype;
  return BindDrawn(arguments[0].type, arguments[1],
                   [dtype](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
                     const bool turned = draws.Below(2) == 1;
                     draws.Note("flipped", turned);
                     RunTurn({.flip_rows = turned}, dtype, image, out);
                     return absl::OkStatus();
                   });
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
