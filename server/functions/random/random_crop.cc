#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/drawn_window.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  Shape size;
  if (const absl::Status status =
          FirstError({CheckImage(arguments[0]), ReadShape(arguments[1], "size", &size)});
      !status.ok()) {
    return status;
  }
  const Shape& shape = arguments[0].type.shape;
  if (size.size() == 3) {
    if (shape[2] != kUnknownSize && shape[2] != size[2]) {
      return WrongArgument(
          "size", absl::StrCat("all channels of the image, ", TypeToString(arguments[0].type)));
    }
  } else if (size.size() != 2) {
    return WrongArgument("size", "[height, width] or [height, width, channels], constants");
  }
  const int64_t channels = size.size() == 3 ? size[2] : 0;
  return BindDrawnWindow(
      arguments[0].type, arguments[2], size[0], size[1],
      [size, channels](Draws& draws, const Shape& image) -> absl::StatusOr<Window> {
        if (size[0] > image[0] || size[1] > image[1] || (channels != 0 && channels != image[2])) {
          return absl::DataLossError(absl::StrCat(
              "image smaller than the crop: ", ShapeToString(image), " and ", ShapeToString(size)));
        }
        Window window{0, 0, size[0], size[1]};
        window.top =
            static_cast<int64_t>(draws.Below(static_cast<uint64_t>(image[0] - size[0] + 1)));
        window.left =
            static_cast<int64_t>(draws.Below(static_cast<uint64_t>(image[1] - size[1] + 1)));
        return window;
      });
}

const RowFunctionRegistration kRegistration({
    .name = "random_crop",
    .signature = "random_crop(image, size, seed=None)",
    .doc = "A part of an image whose place is drawn, as tf.image.random_crop gives it: all places "
           "inside the image are equally likely.\n"
           "\n"
           "image: numbers of shape (height, width, channels); the result has its dtype.\n"
           "size: [height, width] or [height, width, channels], constants; the channels must be "
           "the image's.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The draw belongs to the element: it depends on seed, stage, epoch and the element's "
           "record, on nothing else.\n"
           "Calls of the same stage with the same seed draw alike, calls without a seed do not. An "
           "image that is too small is an\n"
           "error of its record, or of the spec where its size is known.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
