#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/expr/data_integers.h"
#include "server/image/resize_method.h"

namespace penstock::expr {
namespace {

struct Size {
  int64_t height;
  int64_t width;

  // The size of the same aspect ratio that just fits, rounded in float32, halves to even.
  Size Within(int64_t image_height, int64_t image_width) const {
    const auto rows = static_cast<float>(image_height), columns = static_cast<float>(image_width);
    const float scale =
        std::min(static_cast<float>(height) / rows, static_cast<float>(width) / columns);
    return {static_cast<int64_t>(std::nearbyint(scale * rows)),
            static_cast<int64_t>(std::nearbyint(scale * columns))};
  }

  // What an image of this shape becomes.
  Size For(const Shape& image, bool fits) const {
    return fits && image[0] > 0 && image[1] > 0 ? Within(image[0], image[1]) : *this;
  }
};

// What an image becomes; `sizes` is the size, where the data tells it.
absl::StatusOr<Size> ResizedSize(const Shape& image, absl::Span<const RowValue> sizes,
                                 const DataIntegers& given, bool fits) {
  IntegersRead sides;
  if (absl::Status status = given.Read(sizes, &sides); !status.ok()) return status;
  const Size size = Size{sides[0], sides[1]}.For(image, fits);
  if (absl::Status status = CheckResize(image, size.height, size.width); !status.ok())
    return status;
  return size;
}

// A bilinear resizing that is cropped computes that part alone.
class PartOfResize final : public PartReader {
 public:
  PartOfResize(DType dtype, const DataIntegers& given, bool fits)
      : dtype_(dtype), given_(given), fits_(fits) {}

  absl::StatusOr<Shape> Start(absl::Span<const RowValue> arguments) override {
    image_ = &arguments[0];
    const auto size = ResizedSize(image_->shape, arguments.subspan(1), given_, fits_);
    if (!size.ok()) return size.status();
    size_ = *size;
    return Shape{size_.height, size_.width, image_->shape[2]};
  }

  absl::Status Read(int64_t top, int64_t left, int64_t height, int64_t width,
                    uint8_t* pixels) override {
    Arena scratch;
    Block block(scratch, pixels);
    return ReadTo(top, left, height, width, 0, scratch, block);
  }

  absl::Status ReadTo(int64_t top, int64_t left, int64_t height, int64_t width, size_t,
                      Arena& scratch, RowOutput& out) override {
    if (height > 0 && width > 0) {
      ResizeBilinearWindow(dtype_, *image_, size_.height, size_.width, {top, left, height, width},
                           scratch, out);
    }
    return absl::OkStatus();
  }

 private:
  // Memory that no byte behind it belongs to: tiles are copied there.
  class Block final : public RowOutput {
   public:
    Block(Arena& scratch, uint8_t* to) : scratch_(scratch), to_(to) {}
    void SetShape(const Shape&) override {}
    uint8_t* Reserve(size_t bytes) override {
      if (bytes > capacity_) tile_ = scratch_.Allocate(capacity_ = bytes);
      reserved_ = bytes;
      return tile_;
    }
    void Commit() override {
      std::memcpy(to_, tile_, reserved_);
      to_ += reserved_;
    }

   private:
    Arena& scratch_;
    uint8_t* to_;
    uint8_t* tile_ = nullptr;
    size_t capacity_ = 0;
    size_t reserved_ = 0;
  };

  const DType dtype_;
  const DataIntegers& given_;
  const bool fits_;
  Size size_{};
  const RowValue* image_ = nullptr;
};

class Resize final : public RowKernel {
 public:
  Resize(const ResizeMethod& method, DType dtype, DataIntegers given, bool fits, bool sets_shape)
      : method_(method),
        dtype_(dtype),
        given_(std::move(given)),
        fits_(fits),
        sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    const auto size = ResizedSize(image.shape, arguments.subspan(1), given_, fits_);
    if (!size.ok()) return size.status();
    if (absl::Status lines = CheckResizeLines(method_, image.shape, size->width); !lines.ok())
      return lines;
    if (sets_shape_) out.SetShape({size->height, size->width, image.shape[2]});
    RunResize(method_, dtype_, image, size->height, size->width, scratch, out);
    return absl::OkStatus();
  }

  // The whole image, as it is made.
  bool takes_parts() const override {
    return method_.run == ResizeBilinear && dtype_ == DType::kUint8;
  }
  absl::Status RunOnPart(PartReader& reader, const Shape& image, absl::Span<const RowValue> sizes,
                         Arena& scratch, RowOutput& out) const override {
    const auto size = ResizedSize(image, sizes, given_, fits_);
    if (!size.ok()) return size.status();
    if (sets_shape_) out.SetShape({size->height, size->width, image[2]});
    return ResizeBilinearRead(reader, image, size->height, size->width, scratch, out);
  }

  std::unique_ptr<PartReader> NewPartReader() const override {
    const bool has_parts =
        method_.run == ResizeBilinear && (dtype_ == DType::kUint8 || dtype_ == DType::kFloat32);
    return has_parts ? std::make_unique<PartOfResize>(dtype_, given_, fits_) : nullptr;
  }

 private:
  const ResizeMethod method_;
  const DType dtype_;
  const DataIntegers given_;
  const bool fits_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  DataIntegers given;
  if (absl::Status status =
          given.AddList(arguments, 1, "size", "[height, width]", 2, 1, kImageSideMax);
      !status.ok()) {
    return status;
  }
  std::string name = "bilinear", like = "tf";
  bool fits = false, antialias = false;
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[2], "method", &name),
                      ReadConstant(arguments[3], "preserve_aspect_ratio", &fits),
                      ReadConstant(arguments[4], "antialias", &antialias),
                      ReadConstant(arguments[5], "like", &like)});
      !status.ok()) {
    return status;
  }
  const auto method = FindResizeMethod(name, antialias, like);
  if (!method.ok()) return method.status();
  if (const absl::Status status = CheckResizeImage(arguments[0], *method); !status.ok()) {
    return status;
  }
  const TensorType& image = arguments[0].type;
  const Shape& shape = image.shape;
  Size shown{given.size(0), given.size(1)};
  if (fits) {
    const Size size = shown;
    shown = {kUnknownSize, kUnknownSize};
    if (shape[0] > 0 && shape[1] > 0 && given.all_constant()) {
      shown = size.Within(shape[0], shape[1]);
      if (shown.height < 1 || shown.width < 1) {
        return WrongArgument("size",
                             absl::StrCat("a pixel at least of the image: ", TypeToString(image),
                                          " becomes ", shown.height, " x ", shown.width));
      }
    }
  }
  BoundRowFunction bound;
  bound.type = {ResizedDType(image.dtype, *method), {shown.height, shown.width, shape[2]}};
  const bool unknown = shown.height == kUnknownSize || shape[2] == kUnknownSize;
  bound.tensor_arguments = {0};
  bound.tensor_arguments.insert(bound.tensor_arguments.end(), given.positions().begin(),
                                given.positions().end());
  bound.kernel = std::make_shared<Resize>(*method, image.dtype, std::move(given), fits, unknown);
  return bound;
}

const RowFunctionRegistration kResize({
    .name = "resize",
    .signature = "resize(image, size, method=\"bilinear\", preserve_aspect_ratio=False, "
                 "antialias=False, like=\"tf\")",
    .doc =
        "Resizes an image to float32 of shape (height, width, channels), as tf.image.resize does.\n"
        "\n"
        "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels).\n"
        "size: [height, width]: constants, or two integers of the data.\n"
        "method: \"bilinear\", \"nearest\" (takes every dtype and keeps it), \"bicubic\", "
        "\"area\", \"lanczos3\", \"lanczos5\", \"gaussian\" or \"mitchellcubic\".\n"
        "preserve_aspect_ratio: whether the result is only as large as fits into `size`.\n"
        "antialias: whether a shrinking takes all pixels into account; without effect on "
        "\"nearest\" and \"area\".\n"
        "like: whose convention: \"tf\", TensorFlow's; \"pil\", Pillow's, or \"cv2\", OpenCV's, of "
        "uint8 or float32, which is kept.\n"
        "\n"
        "Pixels have their centres at halves. Values keep their range: uint8 gives 0 to 255. "
        "Computed in float32 in TensorFlow's order\n"
        "of operations, to the same bytes but for the Lanczos methods, which are within 2.5e-6 "
        "relative to values above 1.\n"
        "Like Pillow, \"bilinear\", \"bicubic\", \"area\" (its BOX) and \"lanczos3\" always "
        "antialias, to Pillow's bytes of uint8 (columns first). Like OpenCV, \"nearest\", "
        "\"bilinear\", "
        "\"bicubic\"\n"
        "and \"area\" never do but for the last; uint8 is within 1 of OpenCV's, float32 within "
        "1e-5 relative. An image without pixels is an error of its record.\n"
        "Each channel is taken by itself: the bytes of four channels like Pillow are those of "
        "modes CMYK and RGBX, while Pillow multiplies the colors of RGBA by alpha first, but for "
        "\"nearest\".",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
