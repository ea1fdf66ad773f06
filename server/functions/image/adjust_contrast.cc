#include <memory>

#include "server/expr/arguments.h"
#include "server/image/adjust.h"

namespace penstock::expr {
namespace {

class AdjustContrast final : public RowKernel {
 public:
  AdjustContrast(DType dtype, bool sets_shape, float factor)
      : dtype_(dtype), sets_shape_(sets_shape), factor_(factor) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    if (sets_shape_) out.SetShape(arguments[0].shape);
    RunContrast(factor_, dtype_, arguments[0], scratch, out);
    return absl::OkStatus();
  }

  bool takes_tiles() const override { return true; }
  std::unique_ptr<TileFilter> NewTileFilter(const Shape& image, absl::Span<const RowValue>,
                                            Arena& scratch, RowOutput& out) const override {
    return NewContrastFilter(factor_, dtype_, image, scratch, out);
  }

 private:
  const DType dtype_;
  const bool sets_shape_;
  const float factor_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  double factor = 0;
  if (const absl::Status status = FirstError(
          {CheckPixels(arguments[0]), ReadConstant(arguments[1], "contrast_factor", &factor)});
      !status.ok()) {
    return status;
  }
  const TensorType& image = arguments[0].type;
  BoundRowFunction bound;
  bound.type = image;
  bound.kernel = std::make_shared<AdjustContrast>(
      image.dtype, !NumElements(image.shape).has_value(), static_cast<float>(factor));
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "adjust_contrast",
    .signature = "adjust_contrast(image, contrast_factor)",
    .doc = "An image with each value's distance from its channel's mean multiplied, as "
           "tf.image.adjust_contrast does.\n"
           "\n"
           "image: uint8, int8, uint16, int16 or float32 of shape (height, width, channels); the "
           "result has its dtype.\n"
           "contrast_factor: a constant.\n"
           "\n"
           "Integers are clipped. TensorFlow's bytes, by its order of additions.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
