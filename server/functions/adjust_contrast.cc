#include <memory>

#include "server/expr/arguments.h"
#include "server/image/pixels.h"

namespace penstock::expr {
namespace {

// The mean of each channel, by TensorFlow's order of additions: the second half of the pixels is
// added to the first until one is left. Of an odd number the middle one waits for the next round.
// `values` is used up.
void FoldMeans(float* values, int64_t num_pixels, int64_t channels, float* means) {
  for (int64_t left = num_pixels; left > 1;) {
    const int64_t right = left / 2;
    left -= right;
    const float* const second = values + left * channels;
    for (int64_t i = 0; i < right * channels; ++i) values[i] += second[i];
  }
  const float scale = 1.0f / static_cast<float>(num_pixels);
  for (int64_t c = 0; c < channels; ++c) means[c] = values[c] * scale;
}

class AdjustContrast final : public RowKernel {
 public:
  AdjustContrast(DType dtype, bool sets_shape, float factor)
      : dtype_(dtype), sets_shape_(sets_shape), factor_(factor) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    if (sets_shape_) out.SetShape(image.shape);
    const int64_t num_pixels = image.shape[0] * image.shape[1], channels = image.shape[2];
    if (num_pixels * channels == 0) return absl::OkStatus();
    const auto count = static_cast<size_t>(num_pixels * channels);
    auto* const values = scratch.AllocateArray<float>(count);
    auto* const means = scratch.AllocateArray<float>(static_cast<size_t>(channels));
    PixelsToFloat(dtype_, image.data, count, values);
    FoldMeans(values, num_pixels, channels, means);
    const PixelMap map{
        .apply = [this, means](const float* in, int64_t pixels, int64_t channels, float* to) {
          for (int64_t i = 0; i < pixels; ++i, in += channels, to += channels) {
            for (int64_t c = 0; c < channels; ++c) {
              to[c] = means[c] + factor_ * (in[c] - means[c]);
            }
          }
        }};
    RunPixels(map, dtype_, image, scratch, out);
    return absl::OkStatus();
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
