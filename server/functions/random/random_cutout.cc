#include <algorithm>

#include "server/expr/arguments.h"
#include "server/image/drawn.h"
#include "server/image/drawn_window.h"
#include "server/image/erase.h"

namespace penstock::expr {
namespace {

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t height = 0, width = 0;
  PixelValue value;
  const DType dtype = arguments[0].type.dtype;
  if (const absl::Status status = FirstError(
          {CheckImage(arguments[0], {DType::kUint8, DType::kInt8, DType::kUint16, DType::kInt16,
                                     DType::kInt32, DType::kFloat32, DType::kFloat64}),
           ReadSize(arguments[1], "mask_size", &height, &width),
           ReadPixelValue(arguments[2], "constant_values", dtype, &value)});
      !status.ok()) {
    return status;
  }
  if (height % 2 != 0 || width % 2 != 0) {
    return WrongArgument("mask_size", "even sizes, [height, width]");
  }
  return BindDrawn(
      arguments[0].type, arguments[3],
      [=](Draws& draws, const RowValue& image, Arena&, RowOutput& out) {
        Window window;
        if (image.shape[0] > 0 && image.shape[1] > 0) {
          const auto y = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(image.shape[0])));
          const auto x = static_cast<int64_t>(draws.Below(static_cast<uint64_t>(image.shape[1])));
          window.top = std::max<int64_t>(y - height / 2, 0);
          window.left = std::max<int64_t>(x - width / 2, 0);
          window.height = std::min(y + height / 2, image.shape[0]) - window.top;
          window.width = std::min(x + width / 2, image.shape[1]) - window.left;
        }
        NoteWindow(window, draws);
        RunErase(window, value, dtype, image, out);
        return absl::OkStatus();
      });
}

const RowFunctionRegistration kRegistration({
    .name = "random_cutout",
    .signature = "random_cutout(image, mask_size, constant_values=0, seed=None)",
    .doc = "An image of which a rectangle is painted over, as TensorFlow Addons' random_cutout "
           "does.\n"
           "\n"
           "image: uint8, int8, uint16, int16, int32, float32 or float64 of shape (height, width, "
           "channels); the result has its dtype.\n"
           "mask_size: [height, width], even constants.\n"
           "constant_values: what stands there in all channels, a constant of the image's dtype.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "The rectangle's middle is any pixel with the same probability; what would lie beyond "
           "the image is left out. The draw belongs to\n"
           "the element: it depends on seed, stage, epoch and the element's record, on nothing "
           "else. Calls of the same stage with the same\n"
           "seed draw alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
