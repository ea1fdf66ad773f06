#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/window.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  Window window;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0]),
                      ReadConstant(arguments[1], "offset_height", 0, kImageSideMax, &window.top),
                      ReadConstant(arguments[2], "offset_width", 0, kImageSideMax, &window.left),
                      ReadConstant(arguments[3], "target_height", 1, kImageSideMax, &window.height),
                      ReadConstant(arguments[4], "target_width", 1, kImageSideMax, &window.width)});
      !status.ok()) {
    return status;
  }
  return BindWindow(
      arguments[0].type, window.height, window.width,
      [window](int64_t height, int64_t width) -> absl::StatusOr<Window> {
        if (window.top + window.height > height || window.left + window.width > width) {
          return absl::DataLossError(
              absl::StrCat("bounding box reaches beyond the image: rows ", window.top, " to ",
                           window.top + window.height, " and columns ", window.left, " to ",
                           window.left + window.width, " of ", height, " x ", width));
        }
        return window;
      });
}

const RowFunctionRegistration kRegistration({
    .name = "crop_to_bounding_box",
    .signature = "crop_to_bounding_box(image, offset_height, offset_width, target_height, "
                 "target_width)",
    .doc = "A part of an image, as tf.image.crop_to_bounding_box gives it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "offset_height, offset_width: the first row and column that are kept, constants.\n"
           "target_height, target_width: how many are kept, constants.\n"
           "\n"
           "TensorFlow's bytes. An image that is too small is an error of its record, or of the "
           "spec where its size is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
