// "area": the mean of what a pixel of the result covers of the image.
#include <algorithm>
#include <cmath>

#include "server/image/resize_method.h"
#include "server/kernels/weighted_sum.h"

namespace penstock::expr {
namespace {

// What leaves the first product of a sum as it is.
constexpr float kFirst = -0.0f;

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

// The covers of a line's pixels. Those that rounding makes reach beyond the image, whose last pixel
// then counts twice, are at its end.
class LineCovers {
 public:
  LineCovers(int64_t width_in, int64_t width_out, float scale, Arena& scratch)
      : width_in_(width_in),
        width_out_(width_out),
        starts_(scratch.AllocateArray<int64_t>(static_cast<size_t>(width_out))),
        counts_(scratch.AllocateArray<int64_t>(static_cast<size_t>(width_out))) {
    for (int64_t x = 0; x < width_out; ++x) {
      const Cover cover(x, scale);
      starts_[x] = cover.start;
      counts_[x] = cover.end - cover.start;
      span_ = std::max(span_, counts_[x]);
      if (cover.end <= width_in && inside_ == x) inside_ = x + 1;
    }
    weights_ = scratch.AllocateArray<float>(static_cast<size_t>(width_out * span_));
    for (int64_t x = 0; x < width_out; ++x) {
      const Cover cover(x, scale);
      for (int64_t k = 0; k < counts_[x]; ++k)
        weights_[x * span_ + k] = cover.share(cover.start + k);
    }
  }

  void Sum(const float* line, int64_t channels, float* out) const {
    kernels::SumPixels(line, width_in_, channels,
                       {static_cast<size_t>(span_), starts_, weights_, counts_}, inside_, kFirst,
                       out);
    for (int64_t x = inside_; x < width_out_; ++x) {
      for (int64_t c = 0; c < channels; ++c) {
        float sum = kFirst;
        for (int64_t k = 0; k < counts_[x]; ++k) {
          const int64_t column = std::min(starts_[x] + k, width_in_ - 1);
          sum += line[column * channels + c] * weights_[x * span_ + k];
        }
        out[x * channels + c] = sum;
      }
    }
  }

 private:
  const int64_t width_in_, width_out_;
  int64_t* const starts_;
  int64_t* const counts_;
  float* weights_ = nullptr;
  int64_t span_ = 0;
  int64_t inside_ = 0;
};

}  // namespace

void ResizeArea(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                RowOutput& out) {
  const auto* const in = reinterpret_cast<const float*>(image.data);
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const float row_scale = static_cast<float>(rows) / static_cast<float>(height);
  const float column_scale = static_cast<float>(columns) / static_cast<float>(width);
  const auto scale = static_cast<float>(1.0 / (row_scale * column_scale));
  const LineCovers across(columns, width, column_scale, scratch);
  const int64_t row_values = columns * channels, values = width * channels;
  // The last row has nothing behind it that could be read: it is summed from a copy.
  auto* const last =
      scratch.AllocateArray<float>(static_cast<size_t>(row_values) + kernels::kPixelPadding);
  std::copy_n(in + (rows - 1) * row_values, row_values, last);
  std::fill_n(last + row_values, kernels::kPixelPadding, 0.0f);
  int64_t used_max = 0;
  for (int64_t y = 0; y < height; ++y) {
    const Cover down(y, row_scale);
    used_max = std::max(used_max, down.end - down.start);
  }
  used_max = std::min(used_max, kAreaLinesMax);
  // Once: what takes the rows may keep memory of the same arena.
  auto* const sums = scratch.AllocateArray<float>(static_cast<size_t>(used_max * values));
  auto* const lines = scratch.AllocateArray<const float*>(static_cast<size_t>(used_max));
  auto* const shares = scratch.AllocateArray<float>(static_cast<size_t>(used_max));
  for (int64_t y = 0; y < height; ++y) {
    const Cover down(y, row_scale);
    auto* const to =
        reinterpret_cast<float*>(out.Reserve(static_cast<size_t>(values) * sizeof(float)));
    float first = 0.0f;
    int64_t used = 0;
    const auto sum = [&] {
      kernels::SumRows(lines, shares, static_cast<size_t>(used), static_cast<size_t>(values), first,
                       to);
    };
    for (int64_t k = down.start; k < down.end; ++k) {
      if (used == kAreaLinesMax) {
        // What has been summed is the first of those that follow, as it is.
        sum();
        std::copy_n(to, values, sums);
        shares[0] = 1.0f;
        first = kFirst;
        used = 1;
      }
      const int64_t row = std::min(k, rows - 1);
      float* const line = sums + used * values;
      across.Sum(row == rows - 1 ? last : in + row * row_values, channels, line);
      lines[used] = line;
      shares[used++] = down.share(k);
    }
    sum();
    for (int64_t i = 0; i < values; ++i) to[i] *= scale;
    out.Commit();
  }
}

}  // namespace penstock::expr
