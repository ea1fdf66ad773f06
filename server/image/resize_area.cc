// "area": the mean of what a pixel of the result covers of the image.
#include <algorithm>
#include <cmath>

#include "server/image/resize_method.h"

namespace penstock::expr {
namespace {

// The pixels [start, end) of one axis that a pixel of the result covers, and how much of the first
// and the last. Those between are covered wholly.
struct Cover {
  int64_t start;
  int64_t end;
  float begin;
  float finish;

  Cover(int64_t to, float scale) {
    const float low = static_cast<float>(to) * scale, high = static_cast<float>(to + 1) * scale;
    start = static_cast<int64_t>(std::floor(low));
    end = static_cast<int64_t>(std::ceil(high));
    const auto part = [&](int64_t i) {
      const auto left = static_cast<float>(i), right = static_cast<float>(i + 1);
      if (left < low) return right > high ? scale : right - low;
      return right > high ? high - left : 1.0f;
    };
    begin = part(start);
    finish = part(end - 1);
  }

  float share(int64_t i) const { return i == start ? begin : i == end - 1 ? finish : 1.0f; }
};

}  // namespace

void ResizeArea(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                RowOutput& out) {
  const auto* const in = reinterpret_cast<const float*>(image.data);
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const float row_scale = static_cast<float>(rows) / static_cast<float>(height);
  const float column_scale = static_cast<float>(columns) / static_cast<float>(width);
  const auto scale = static_cast<float>(1.0 / (row_scale * column_scale));
  const auto row_bytes = static_cast<size_t>(width * channels) * sizeof(float);
  auto* const sum = scratch.AllocateArray<float>(static_cast<size_t>(channels));
  for (int64_t y = 0; y < height; ++y) {
    const Cover down(y, row_scale);
    auto* to = reinterpret_cast<float*>(out.Reserve(row_bytes));
    for (int64_t x = 0; x < width; ++x, to += channels) {
      const Cover across(x, column_scale);
      std::fill_n(to, channels, 0.0f);
      for (int64_t row = down.start; row < down.end; ++row) {
        const float* const line = in + std::clamp<int64_t>(row, 0, rows - 1) * columns * channels;
        for (int64_t column = across.start; column < across.end; ++column) {
          const float* const pixel = line + std::clamp<int64_t>(column, 0, columns - 1) * channels;
          const float share = across.share(column);
          for (int64_t c = 0; c < channels; ++c) {
            const float part = pixel[c] * share;
            sum[c] = column == across.start ? part : sum[c] + part;
          }
        }
        const float share = down.share(row);
        for (int64_t c = 0; c < channels; ++c) to[c] += sum[c] * share;
      }
      for (int64_t c = 0; c < channels; ++c) to[c] *= scale;
    }
    out.Commit();
  }
}

}  // namespace penstock::expr
