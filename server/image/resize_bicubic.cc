// "bicubic" without antialiasing: R. G. Keys' convolution (a = -0.5) over four pixels, at positions
// rounded to 1/1024; pixels beyond the image have no weight, and the others are scaled to a sum of
// 1.
#include <algorithm>
#include <cmath>
#include <limits>

#include "server/image/resize_method.h"
#include "server/kernels/weighted_sum.h"

namespace penstock::expr {
namespace {

constexpr int64_t kSteps = 1024;

struct Tap {
  int64_t index[4];
  float weight[4];
};

// The weight at a distance of `step` / 1024, below 1 (near) or that far above 1.
float Near(int64_t step) {
  constexpr double kA = -0.5;
  const auto x = static_cast<float>(static_cast<double>(step) / kSteps);
  return static_cast<float>(((kA + 2) * x - (kA + 3)) * x * x + 1);
}
float Far(int64_t step) {
  constexpr double kA = -0.5;
  auto x = static_cast<float>(static_cast<double>(step) / kSteps);
  x += 1;
  return static_cast<float>(((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA);
}

Tap MakeTap(float scale, int64_t to, int64_t size) {
  const float position = (static_cast<float>(to) + 0.5f) * scale - 0.5f;
  const auto first = static_cast<int64_t>(std::floor(position));
  const float delta = position - static_cast<float>(first);
  const int64_t step = std::lrintf(delta * kSteps);
  const float weights[4] = {Far(step), Near(step), Near(kSteps - step), Far(kSteps - step)};
  Tap tap;
  for (int i = 0; i < 4; ++i) {
    tap.index[i] = std::clamp<int64_t>(first - 1 + i, 0, size - 1);
    tap.weight[i] = tap.index[i] == first - 1 + i ? weights[i] : 0.0f;
  }
  const float sum = tap.weight[0] + tap.weight[1] + tap.weight[2] + tap.weight[3];
  if (std::fabs(sum) >= 1000.0f * std::numeric_limits<float>::min()) {
    const float scale_to_one = 1.0f / sum;
    for (float& weight : tap.weight) weight *= scale_to_one;
  }
  return tap;
}

// The taps of a line's pixels. Those of the middle ones lie side by side, as PixelSpans has them.
class LineTaps {
 public:
  LineTaps(int64_t width_in, int64_t width_out, Arena& scratch)
      : width_in_(width_in),
        width_out_(width_out),
        taps_(scratch.AllocateArray<Tap>(static_cast<size_t>(width_out))),
        starts_(scratch.AllocateArray<int64_t>(static_cast<size_t>(width_out))),
        weights_(scratch.AllocateArray<float>(static_cast<size_t>(4 * width_out))) {
    const float scale = static_cast<float>(width_in) / static_cast<float>(width_out);
    for (int64_t x = 0; x < width_out; ++x) {
      taps_[x] = MakeTap(scale, x, width_in);
      starts_[x] = taps_[x].index[0];
      std::copy_n(taps_[x].weight, 4, weights_ + 4 * x);
    }
    while (middle_ < width_out && !IsMiddle(middle_)) ++middle_;
    end_ = middle_;
    while (end_ < width_out && IsMiddle(end_)) ++end_;
  }

  void Sum(const float* line, int64_t channels, float* out) const {
    for (int64_t x = 0; x < middle_; ++x) SumPixel(line, channels, x, out);
    kernels::SumPixels(line, width_in_, channels, {4, starts_ + middle_, weights_ + 4 * middle_},
                       end_ - middle_, kFirst, out + middle_ * channels);
    for (int64_t x = end_; x < width_out_; ++x) SumPixel(line, channels, x, out);
  }

  static constexpr float kFirst = -0.0f;

 private:
  bool IsMiddle(int64_t x) const { return taps_[x].index[3] - taps_[x].index[0] == 3; }

  void SumPixel(const float* line, int64_t channels, int64_t x, float* out) const {
    const Tap& tap = taps_[x];
    for (int64_t c = 0; c < channels; ++c) {
      float sum = kFirst;
      for (int i = 0; i < 4; ++i) sum += line[tap.index[i] * channels + c] * tap.weight[i];
      out[x * channels + c] = sum;
    }
  }

  const int64_t width_in_, width_out_;
  Tap* const taps_;
  int64_t* const starts_;
  float* const weights_;
  int64_t middle_ = 0, end_ = 0;
};

}  // namespace

void ResizeBicubic(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                   RowOutput& out) {
  const auto* const in = reinterpret_cast<const float*>(image.data);
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const float row_scale = static_cast<float>(rows) / static_cast<float>(height);
  const LineTaps across(columns, width, scratch);
  const int64_t row_values = columns * channels;
  auto* const line =
      scratch.AllocateArray<float>(static_cast<size_t>(row_values) + kernels::kPixelPadding);
  std::fill_n(line + row_values, kernels::kPixelPadding, 0.0f);
  const auto row_bytes = static_cast<size_t>(width * channels) * sizeof(float);
  for (int64_t y = 0; y < height; ++y) {
    const Tap tap = MakeTap(row_scale, y, rows);
    const float* from[4];
    for (int i = 0; i < 4; ++i) from[i] = in + tap.index[i] * row_values;
    kernels::SumRows(from, tap.weight, 4, row_values, LineTaps::kFirst, line);
    across.Sum(line, channels, reinterpret_cast<float*>(out.Reserve(row_bytes)));
    out.Commit();
  }
}

}  // namespace penstock::expr
