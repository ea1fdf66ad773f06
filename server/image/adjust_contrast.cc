#include "server/image/adjust.h"

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

}  // namespace

void RunContrast(float factor, DType dtype, const RowValue& image, Arena& scratch, RowOutput& out) {
  const int64_t num_pixels = image.shape[0] * image.shape[1], channels = image.shape[2];
  if (num_pixels * channels == 0) return;
  const auto count = static_cast<size_t>(num_pixels * channels);
  auto* const values = scratch.AllocateArray<float>(count);
  auto* const means = scratch.AllocateArray<float>(static_cast<size_t>(channels));
  PixelsToFloat(dtype, image.data, count, values);
  FoldMeans(values, num_pixels, channels, means);
  const PixelMap map{
      .apply = [factor, means](const float* in, int64_t pixels, int64_t channels, float* to) {
        for (int64_t i = 0; i < pixels; ++i, in += channels, to += channels) {
          for (int64_t c = 0; c < channels; ++c) to[c] = means[c] + factor * (in[c] - means[c]);
        }
      }};
  RunPixels(map, dtype, image, scratch, out);
}

}  // namespace penstock::expr
