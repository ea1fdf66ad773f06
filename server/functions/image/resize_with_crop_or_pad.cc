#include <utility>

#include "server/expr/arguments.h"
#include "server/image/window.h"

namespace penstock::expr {
namespace {

// Where a window of `target` begins on a side of `size`. The lesser half of an odd difference comes
// first, as in TensorFlow.
int64_t Start(int64_t size, int64_t target) {
  return size > target ? (size - target) / 2 : -((target - size) / 2);
}

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  DataIntegers integers;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0]), integers.Add(arguments, 1, "target_height", 1, kImageSideMax),
           integers.Add(arguments, 2, "target_width", 1, kImageSideMax)});
      !status.ok()) {
    return status;
  }
  const int64_t target_height = integers.size(0), target_width = integers.size(1);
  return BindWindow(
      arguments[0].type, target_height, target_width,
      [](int64_t height, int64_t width,
         absl::Span<const int64_t> target) -> absl::StatusOr<Window> {
        return Window{Start(height, target[0]), Start(width, target[1]), target[0], target[1]};
      },
      std::move(integers));
}

const RowFunctionRegistration kRegistration({
    .name = "resize_with_crop_or_pad",
    .signature = "resize_with_crop_or_pad(image, target_height, target_width)",
    .doc = "An image cut or filled up with zeros, about its middle, to a size, as "
           "tf.image.resize_with_crop_or_pad does.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "target_height, target_width: the size of the result: constants, or integers of the "
           "data.\n"
           "\n"
           "Of an odd difference the lesser half is cut or filled above and on the left. "
           "TensorFlow's bytes.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
