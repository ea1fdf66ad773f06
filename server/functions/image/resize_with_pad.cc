#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "server/expr/arguments.h"
#include "server/image/resize_method.h"

namespace penstock::expr {
namespace {

// Places the rows of a resized image in a larger one of zeros.
class PaddedOutput final : public RowOutput {
 public:
  PaddedOutput(uint8_t* memory) : next_(memory) {}

  void SetShape(const Shape&) override {}
  uint8_t* Reserve(size_t bytes) override {
    reserved_ = bytes;
    return next_;
  }
  void Commit() override { next_ += reserved_; }

 private:
  uint8_t* next_;
  size_t reserved_ = 0;
};

class ResizeWithPad final : public RowKernel {
 public:
  ResizeWithPad(const ResizeMethod& method, DType dtype, int64_t height, int64_t width,
                bool sets_shape)
      : method_(method), dtype_(dtype), height_(height), width_(width), sets_shape_(sets_shape) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    const int64_t channels = image.shape[2];
    if (const absl::Status status = CheckResize(image.shape, height_, width_); !status.ok()) {
      return status;
    }
    // All in float32, as in TensorFlow.
    const auto rows = static_cast<float>(image.shape[0]);
    const auto columns = static_cast<float>(image.shape[1]);
    const auto target_rows = static_cast<float>(height_);
    const auto target_columns = static_cast<float>(width_);
    const float ratio = std::max(columns / target_columns, rows / target_rows);
    const float exact_rows = rows / ratio, exact_columns = columns / ratio;
    const auto height = static_cast<int64_t>(std::floor(exact_rows));
    const auto width = static_cast<int64_t>(std::floor(exact_columns));
    const auto top =
        std::max<int64_t>(static_cast<int64_t>(std::floor((target_rows - exact_rows) / 2)), 0);
    const auto left = std::max<int64_t>(
        static_cast<int64_t>(std::floor((target_columns - exact_columns) / 2)), 0);
    if (const absl::Status status = FirstError({CheckResize(image.shape, height, width),
                                                CheckResizeLines(method_, image.shape, width)});
        !status.ok()) {
      return status;
    }
    if (top + height > height_ || left + width > width_) {
      return absl::DataLossError(absl::StrCat("resized image does not fit: ", height, " x ", width,
                                              " into ", height_, " x ", width_));
    }
    if (sets_shape_) out.SetShape({height_, width_, channels});
    const auto pixel_bytes =
        static_cast<size_t>(channels) * DTypeSize(ResizedDType(dtype_, method_));
    const size_t resized_bytes = static_cast<size_t>(width) * pixel_bytes;
    uint8_t* const resized = scratch.Allocate(static_cast<size_t>(height) * resized_bytes);
    PaddedOutput rows_out(resized);
    RunResize(method_, dtype_, image, height, width, scratch, rows_out);
    const size_t row_bytes = static_cast<size_t>(width_) * pixel_bytes;
    for (int64_t y = 0; y < height_; ++y) {
      uint8_t* const to = out.Reserve(row_bytes);
      std::memset(to, 0, row_bytes);
      if (y >= top && y < top + height) {
        std::memcpy(to + static_cast<size_t>(left) * pixel_bytes,
                    resized + static_cast<size_t>(y - top) * resized_bytes, resized_bytes);
      }
      out.Commit();
    }
    return absl::OkStatus();
  }

 private:
  const ResizeMethod method_;
  const DType dtype_;
  const int64_t height_;
  const int64_t width_;
  const bool sets_shape_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  int64_t height = 0, width = 0;
  std::string name = "bilinear";
  bool antialias = false;
  if (const absl::Status status =
          FirstError({ReadConstant(arguments[1], "target_height", 1, kImageSideMax, &height),
                      ReadConstant(arguments[2], "target_width", 1, kImageSideMax, &width),
                      ReadConstant(arguments[3], "method", &name),
                      ReadConstant(arguments[4], "antialias", &antialias)});
      !status.ok()) {
    return status;
  }
  const auto method = FindResizeMethod(name, antialias);
  if (!method.ok()) return method.status();
  if (const absl::Status status = CheckResizeImage(arguments[0], *method); !status.ok()) {
    return status;
  }
  const TensorType& image = arguments[0].type;
  BoundRowFunction bound;
  bound.type = {ResizedDType(image.dtype, *method), {height, width, image.shape[2]}};
  bound.kernel = std::make_shared<ResizeWithPad>(*method, image.dtype, height, width,
                                                 image.shape[2] == kUnknownSize);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "resize_with_pad",
    .signature = "resize_with_pad(image, target_height, target_width, method=\"bilinear\", "
                 "antialias=False)",
    .doc = "Resizes an image so that it just fits, and fills the rest with zeros on both sides, as "
           "tf.image.resize_with_pad does.\n"
           "\n"
           "image: as of resize; the result has the dtype that resize gives.\n"
           "target_height, target_width: the size of the result, constants.\n"
           "method: one of resize's.\n"
           "antialias: as of resize.\n"
           "\n"
           "As near to TensorFlow's as resize. An image without pixels, or of which none would be "
           "left, is an error of its record.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
