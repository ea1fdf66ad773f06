#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "server/expr/arguments.h"
#include "server/image/drawn_window.h"
#include "server/image/resize_method.h"

namespace penstock::expr {
namespace {

struct Size {
  int64_t height = 0;
  int64_t width = 0;
};

class RandomResizedCrop final : public RowKernel {
 public:
  RandomResizedCrop(const ResizeMethod& method, DType dtype, const Size& size,
                    const WindowLimits& limits, bool sets_shape, DrawSource source)
      : method_(method),
        dtype_(dtype),
        size_(size),
        limits_(limits),
        sets_shape_(sets_shape),
        source_(std::move(source)) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    const Shape& shape = image.shape;
    const auto window = Place(shape, arguments[1], out);
    if (!window.ok()) return window.status();
    const auto row_bytes = static_cast<size_t>(window->width * shape[2]) * DTypeSize(dtype_);
    const auto image_row_bytes = static_cast<size_t>(shape[1] * shape[2]) * DTypeSize(dtype_);
    const uint8_t* from = image.data + static_cast<size_t>(window->top) * image_row_bytes +
                          static_cast<size_t>(window->left * shape[2]) * DTypeSize(dtype_);
    if (row_bytes == image_row_bytes) {
      Resize(*window, shape[2], from, scratch, out);
      return absl::OkStatus();
    }
    uint8_t* const part = scratch.Allocate(row_bytes * static_cast<size_t>(window->height));
    for (int64_t y = 0; y < window->height; ++y, from += image_row_bytes)
      std::copy_n(from, row_bytes, part + static_cast<size_t>(y) * row_bytes);
    Resize(*window, shape[2], part, scratch, out);
    return absl::OkStatus();
  }

  bool takes_parts() const override { return true; }
  absl::Status RunOnPart(PartReader& reader, const Shape& image, absl::Span<const RowValue> others,
                         Arena& scratch, RowOutput& out) const override {
    const auto window = Place(image, others[0], out);
    if (!window.ok()) return window.status();
    uint8_t* const part = scratch.Allocate(
        static_cast<size_t>(window->height * window->width * image[2]) * DTypeSize(dtype_));
    const absl::Status status =
        reader.Read(window->top, window->left, window->height, window->width, part);
    if (status.ok()) Resize(*window, image[2], part, scratch, out);
    return status;
  }

 private:
  absl::StatusOr<Window> Place(const Shape& image, const RowValue& identity, RowOutput& out) const {
    if (const absl::Status status = FirstError({CheckResize(image, size_.height, size_.width),
                                                CheckResizeLines(method_, image, size_.width)});
        !status.ok()) {
      return status;
    }
    Draws draws(source_, identity);
    const Window window = DrawPart(limits_, draws, image[0], image[1]);
    NoteWindow(window, draws);
    if (sets_shape_) out.SetShape({size_.height, size_.width, image[2]});
    return window;
  }

  // The part is an image of its own: a resize looks no further than its edges.
  void Resize(const Window& window, int64_t channels, const uint8_t* pixels, Arena& scratch,
              RowOutput& out) const {
    RowValue part;
    part.data = pixels;
    part.shape = {window.height, window.width, channels};
    part.bytes = static_cast<size_t>(*NumElements(part.shape)) * DTypeSize(dtype_);
    RunResize(method_, dtype_, part, size_.height, size_.width, scratch, out);
  }

  const ResizeMethod method_;
  const DType dtype_;
  const Size size_;
  const WindowLimits limits_;
  const bool sets_shape_;
  const DrawSource source_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  Size size;
  WindowLimits limits;
  std::string name = "bilinear", like = "tf";
  bool antialias = false;
  if (const absl::Status status = FirstError(
          {ReadSize(arguments[1], "size", &size.height, &size.width),
           ReadRange(arguments[2], "scale", 1e-6, 1, &limits.scale_low, &limits.scale_high),
           ReadRange(arguments[3], "ratio", 1e-3, 1e3, &limits.ratio_low, &limits.ratio_high),
           ReadConstant(arguments[4], "method", &name),
           ReadConstant(arguments[5], "antialias", &antialias),
           ReadConstant(arguments[6], "like", &like)});
      !status.ok()) {
    return status;
  }
  const auto method = FindResizeMethod(name, antialias, like);
  if (!method.ok()) return method.status();
  if (const absl::Status status = CheckResizeImage(arguments[0], *method); !status.ok()) {
    return status;
  }
  const TensorType& image = arguments[0].type;
  BoundRowFunction bound;
  bound.type = {ResizedDType(image.dtype, *method), {size.height, size.width, image.shape[2]}};
  bound.kernel = std::make_shared<RandomResizedCrop>(*method, image.dtype, size, limits,
                                                     image.shape[2] == kUnknownSize,
                                                     ReadDraws(arguments.back()));
  bound.tensor_arguments = {0};
  bound.draws = true;
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "random_resized_crop",
    .signature =
        "random_resized_crop(image, size, scale=[0.08, 1.0], ratio=[0.75, 1.3333333333333333], "
        "method=\"bilinear\", antialias=False, like=\"tf\", seed=None)",
    .doc = "A part of an image, drawn as torchvision's RandomResizedCrop draws it, and resized.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels).\n"
           "size: [height, width] of the result, constants.\n"
           "scale: [low, high], constants: the part's area, as a part of the image's, is drawn "
           "evenly between them.\n"
           "ratio: [low, high], constants: its width over its height; the logarithm is drawn "
           "evenly.\n"
           "method, antialias, like: as of resize. torchvision's bytes of Pillow's images are "
           "those of like=\"pil\", uint8.\n"
           "seed: an integer constant; drawn when the pipeline is made and written into its spec, "
           "if it is left out.\n"
           "\n"
           "Ten times a part is drawn; the first that fits is taken, anywhere in the image with "
           "the same probability. If none fits, it is the\n"
           "largest part in the middle whose ratio is within the limits. The result is that of "
           "crop_to_bounding_box and resize: float32 with the\n"
           "values' range kept, or the image's dtype for \"nearest\" and where another convention "
           "is asked for. The draw belongs to the "
           "element: it depends on seed, stage, epoch and\n"
           "the element's record, on nothing else. Calls of the same stage with the same seed draw "
           "alike, calls without a seed do not.",
    .bind = Bind,
    .random = true,
});

}  // namespace
}  // namespace penstock::expr
