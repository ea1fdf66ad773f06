// Methods that weigh all pixels within a radius; antialiasing widens it as the image shrinks.
#include <algorithm>
#include <cmath>
#include <limits>

#include "server/image/resize_method.h"
#include "server/kernels/power.h"
#include "server/kernels/weighted_sum.h"

namespace penstock::expr {
namespace {

// The sine of 0 to 16, by its series: the C library's differs from one machine's instruction set to
// another's.
float Sine(float x) {
  constexpr double kPi = 3.14159265358979323846;
  const double turns = std::nearbyint(x / kPi);
  const double r = x - turns * kPi;
  double term = r, sum = r;
  for (int n = 2; n <= 24; n += 2) {
    term *= -r * r / (n * (n + 1));
    sum += term;
  }
  return static_cast<float>(std::fmod(turns, 2) == 0 ? sum : -sum);
}

// Each is the weight at a distance of at least 0.
struct Triangle {
  static constexpr float kRadius = 1;
  static float At(float x) { return x < 1.0f ? 1.0f - x : 0.0f; }
};

struct Keys {
  static constexpr float kRadius = 2;
  static float At(float x) {
    if (x >= 2.0f) return 0.0f;
    if (x >= 1.0f) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
    return ((1.5f * x - 2.5f) * x) * x + 1.0f;
  }
};

struct Mitchell {
  static constexpr float kRadius = 2;
  static float At(float x) {
    if (x >= 2.0f) return 0.0f;
    if (x >= 1.0f) return (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
    return (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
  }
};

struct Gaussian {
  static constexpr float kRadius = 1.5f;
  static float At(float x) {
    constexpr float kDeviation = 0.5f;
    if (x >= kRadius) return 0.0f;
    const double exponent = -x * x / (2.0 * kDeviation * kDeviation);
    return static_cast<float>(static_cast<double>(kernels::ExpExtended(exponent)));
  }
};

template <int radius>
struct Lanczos {
  static constexpr float kRadius = radius;
  static float At(float x) {
    constexpr float kPi = 3.14159265359f;
    if (x > kRadius) return 0.0f;
    if (x <= 1e-3) return 1.0f;
    return kRadius * Sine(kPi * x) * Sine(kPi * x / kRadius) / (kPi * kPi * x * x);
  }
};

// For each position of an axis of the result, `span` weights of the pixels from `starts` on.
struct Spans {
  int64_t span = 0;
  int64_t* starts = nullptr;
  float* weights = nullptr;
};

template <typename Kernel>
Spans MakeSpans(int64_t from, int64_t to, bool antialias, Arena& scratch) {
  const float scale = static_cast<float>(to) / static_cast<float>(from);
  const auto inverse = static_cast<float>(1.0 / scale);
  const float widening = antialias ? std::max(inverse, 1.0f) : 1.0f;
  const float radius = Kernel::kRadius * widening;
  const float narrowing = 1.0f / widening;
  Spans spans;
  spans.span = std::min<int64_t>(2 * static_cast<int64_t>(std::ceil(radius)) + 1, from);
  spans.starts = scratch.AllocateArray<int64_t>(static_cast<size_t>(to));
  spans.weights = scratch.AllocateArray<float>(static_cast<size_t>(to * spans.span));
  std::fill_n(spans.weights, to * spans.span, 0.0f);
  for (int64_t i = 0; i < to; ++i) {
    spans.starts[i] = 0;
    const float centre = (static_cast<float>(i) + 0.5f) * inverse;
    if (centre < 0 || centre > static_cast<float>(from)) continue;
    const int64_t start =
        std::clamp<int64_t>(static_cast<int64_t>(std::ceil(centre - radius - 0.5f)), 0, from - 1);
    int64_t end =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(centre + radius - 0.5f)), 0, from - 1) +
        1;
    end = std::min(end, start + spans.span);
    float* const weights = spans.weights + i * spans.span;
    float sum = 0;
    for (int64_t k = start; k < end; ++k) {
      const float distance = static_cast<float>(k) + 0.5f - centre;
      weights[k - start] = Kernel::At(std::fabs(distance * narrowing));
      sum += weights[k - start];
    }
    const bool vanishes = std::fabs(sum) < 1000.0f * std::numeric_limits<float>::min();
    const float factor = vanishes ? 0.0f : 1.0f / sum;
    for (int64_t k = start; k < end; ++k) weights[k - start] *= factor;
    spans.starts[i] = start;
  }
  return spans;
}

template <typename Kernel, bool antialias>
void ResizeBySpans(const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                   RowOutput& out) {
  const auto* const in = reinterpret_cast<const float*>(image.data);
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const Spans down = MakeSpans<Kernel>(rows, height, antialias, scratch);
  const Spans across = MakeSpans<Kernel>(columns, width, antialias, scratch);
  const int64_t row_values = columns * channels;
  auto* const line =
      scratch.AllocateArray<float>(static_cast<size_t>(row_values) + kernels::kPixelPadding);
  std::fill_n(line + row_values, kernels::kPixelPadding, 0.0f);
  auto* const lines = scratch.AllocateArray<const float*>(static_cast<size_t>(down.span));
  const auto row_bytes = static_cast<size_t>(width * channels) * sizeof(float);
  for (int64_t y = 0; y < height; ++y) {
    const int64_t rows_used = std::min(down.span, rows - down.starts[y]);
    for (int64_t k = 0; k < rows_used; ++k) lines[k] = in + (down.starts[y] + k) * row_values;
    kernels::SumRows(lines, down.weights + y * down.span, rows_used, row_values, 0.0f, line);
    auto* const to = reinterpret_cast<float*>(out.Reserve(row_bytes));
    kernels::SumPixels(line, columns, channels,
                       {static_cast<size_t>(across.span), across.starts, across.weights}, width,
                       0.0f, to);
    out.Commit();
  }
}

}  // namespace

void ResizeTriangle(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                    RowOutput& out) {
  ResizeBySpans<Triangle, true>(image, height, width, scratch, out);
}

void ResizeCubic(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                 RowOutput& out) {
  ResizeBySpans<Keys, true>(image, height, width, scratch, out);
}

template <bool antialias>
void ResizeLanczos3(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                    RowOutput& out) {
  ResizeBySpans<Lanczos<3>, antialias>(image, height, width, scratch, out);
}

template <bool antialias>
void ResizeLanczos5(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                    RowOutput& out) {
  ResizeBySpans<Lanczos<5>, antialias>(image, height, width, scratch, out);
}

template <bool antialias>
void ResizeGaussian(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                    RowOutput& out) {
  ResizeBySpans<Gaussian, antialias>(image, height, width, scratch, out);
}

template <bool antialias>
void ResizeMitchell(DType, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                    RowOutput& out) {
  ResizeBySpans<Mitchell, antialias>(image, height, width, scratch, out);
}

template void ResizeLanczos3<false>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeLanczos3<true>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeLanczos5<false>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeLanczos5<true>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeGaussian<false>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeGaussian<true>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeMitchell<false>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);
template void ResizeMitchell<true>(DType, const RowValue&, int64_t, int64_t, Arena&, RowOutput&);

}  // namespace penstock::expr
