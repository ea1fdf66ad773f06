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
      [](int64_t height, int64_t width, absl::Span<const int64_t> box) -> absl::StatusOr<Window> {
        const Window window{box[0], box[1], box[2], box[3]};
        if (window.top + window.height > height || window.left + window.width > width) {
          return absl::DataLossError(
              absl::StrCat("bounding box reaches beyond the image: rows ", window.top, " to ",
                           window.top + window.height, " and columns ", window.left, " to ",
                           window.left + window.width, " of ", height, " x ", width));
        }
        return window;
      },
      std::move(integers));
}

const RowFunctionRegistration kRegistration({
    .name = "crop_to_bounding_box",
    .signature = "crop_to_bounding_box(image, offset_height, offset_width, target_height, "
                 "target_width)",
    .doc = "A part of an image, as tf.image.crop_to_bounding_box gives it.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "offset_height, offset_width: the first row and column that are kept.\n"
           "target_height, target_width: how many are kept; the result has a known size where "
           "these are constants.\n"
           "\n"
           "The integers are constants or values of the data.\n"
           "\n"
           "TensorFlow's bytes. An image that is too small is an error of its record, or of the "
           "spec where its size is known.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
