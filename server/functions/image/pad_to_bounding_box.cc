#include <utility>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/window.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  DataIntegers integers;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0]), integers.Add(arguments, 1, "offset_height", 0, kImageSideMax),
           integers.Add(arguments, 2, "offset_width", 0, kImageSideMax),
           integers.Add(arguments, 3, "target_height", 1, kImageSideMax),
           integers.Add(arguments, 4, "target_width", 1, kImageSideMax)});
      !status.ok()) {
    return status;
  }
  const int64_t target_height = integers.size(2), target_width = integers.size(3);
  return BindWindow(
      arguments[0].type, target_height, target_width,
      [](int64_t height, int64_t width, absl::Span<const int64_t> frame) -> absl::StatusOr<Window> {
        const Window window{-frame[0], -frame[1], frame[2], frame[3]};
        if (height - window.top > window.height || width - window.left > window.width) {
          return absl::DataLossError(absl::StrCat(
              "image does not fit into its frame: ", height, " x ", width, " at row ", -window.top,
              " and column ", -window.left, " of ", window.height, " x ", window.width));
        }
        return window;
      },
      std::move(integers));
}

const RowFunctionRegistration kRegistration({
    .name = "pad_to_bounding_box",
    .signature =
        "pad_to_bounding_box(image, offset_height, offset_width, target_height, target_width)",
    .doc = "An image in a larger one of zeros, as tf.image.pad_to_bounding_box gives it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "offset_height, offset_width: rows of zeros above and columns of zeros before it.\n"
           "target_height, target_width: the size of the result, which is known where these are "
           "constants.\n"
           "\n"
           "The integers are constants or values of the data.\n"
           "\n"
           "TensorFlow's bytes. An image that is too large is an error of its record, or of the "
           "spec where its size is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
