// "bicubic" without antialiasing: R. G. Keys' convolution (a = -0.5) over four pixels, at positions
// rounded to 1/1024; pixels beyond the image have no weight, and the others are scaled to a sum of 1.
#include <algorithm>
#include <cmath>
#include <limits>

#include "server/image/resize_method.h"

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

}  // namespace

void ResizeBicubic(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                   RowOutput& out) {
  const auto* const in = reinterpret_cast<const float*>(image.data);
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const float row_scale = static_cast<float>(rows) / static_cast<float>(height);
  const float column_scale = static_cast<float>(columns) / static_cast<float>(width);
  auto* const taps = scratch.AllocateArray<Tap>(static_cast<size_t>(width));
  for (int64_t x = 0; x < width; ++x) taps[x] = MakeTap(column_scale, x, columns);
  const int64_t row_values = columns * channels;
  auto* const line = scratch.AllocateArray<float>(static_cast<size_t>(row_values));
  const auto row_bytes = static_cast<size_t>(width * channels) * sizeof(float);
  for (int64_t y = 0; y < height; ++y) {
    const Tap tap = MakeTap(row_scale, y, rows);
    const float* from[4];
    for (int i = 0; i < 4; ++i) from[i] = in + tap.index[i] * row_values;
    for (int64_t i = 0; i < row_values; ++i) {
      line[i] = from[0][i] * tap.weight[0] + from[1][i] * tap.weight[1] +
                from[2][i] * tap.weight[2] + from[3][i] * tap.weight[3];
    }
    auto* to = reinterpret_cast<float*>(out.Reserve(row_bytes));
    for (int64_t x = 0; x < width; ++x) {
      const Tap& across = taps[x];
      const float* pixel[4];
      for (int i = 0; i < 4; ++i) pixel[i] = line + across.index[i] * channels;
      for (int64_t c = 0; c < channels; ++c, ++to) {
        *to = pixel[0][c] * across.weight[0] + pixel[1][c] * across.weight[1] +
              pixel[2][c] * across.weight[2] + pixel[3][c] * across.weight[3];
      }
    }
    out.Commit();
  }
}

}  // namespace penstock::expr
