// Resizing by the conventions of Pillow and OpenCV: which pixels count, how much, and where results
// are rounded.
//
// Pillow (ImagingResample): every filter is widened as the image shrinks; bytes are summed in
// integers of 22 fractional bits, and rounded and clipped after the columns and after the rows, in
// that order (releases from 13 on sometimes take the rows first). OpenCV (cv::resize): nothing is
// widened, pixels beyond the image repeat its edge, bytes are rounded once, at the end.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "server/image/resize_method.h"
#include "server/kernels/byte_sum.h"
#include "server/kernels/x87.h"

namespace penstock::expr {
namespace {

// What a position of the result takes of an axis: `count` pixels from `first` on. Beyond the ends
// the nearest pixel is meant.
struct Taps {
  int64_t count = 0;
  std::vector<int64_t> first;
  std::vector<double> weights;  // [position][count]
};

using Filter = double (*)(double x);

double Sinc(double x) {
  if (x == 0) return 1;
  const kernels::X87 turned = kernels::X87(x) * 3.14159265358979323846264338327950288L;
  return static_cast<double>(kernels::X87(std::sin(static_cast<long double>(turned))) / turned);
}

double Box(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }
double Triangle(double x) { return std::max(1 - std::fabs(x), 0.0); }
double Lanczos(double x) { return x >= -3 && x < 3 ? Sinc(x) * Sinc(x / 3) : 0; }
// R. G. Keys' convolution.
double Cubic(double x, double a) {
  x = std::fabs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}
double PillowCubic(double x) { return Cubic(x, -0.5); }

Taps PillowTaps(int64_t from, int64_t to, Filter filter, double radius) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const double widening = std::max(scale, 1.0);
  const double support = radius * widening;
  Taps taps;
  taps.count = 2 * static_cast<int64_t>(std::ceil(support)) + 1;
  taps.first.resize(static_cast<size_t>(to));
  taps.weights.resize(static_cast<size_t>(to * taps.count));
  for (int64_t i = 0; i < to; ++i) {
    const double centre = (static_cast<double>(i) + 0.5) * scale;
    const int64_t first = std::max<int64_t>(static_cast<int64_t>(centre - support + 0.5), 0);
    const int64_t end = std::min(static_cast<int64_t>(centre + support + 0.5), from);
    double* const weights = &taps.weights[static_cast<size_t>(i * taps.count)];
    double sum = 0;
    for (int64_t k = first; k < end; ++k) {
      weights[k - first] = filter((static_cast<double>(k) - centre + 0.5) / widening);
      sum += weights[k - first];
    }
    for (int64_t k = 0; k < end - first; ++k) {
      if (sum != 0) weights[k] /= sum;
    }
    taps.first[static_cast<size_t>(i)] = first;
  }
  return taps;
}

// Positions are summed up from pixel to pixel, as Pillow does: what lies on a border is then on the
// same side of it.
Taps PillowNearest(int64_t from, int64_t to) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  Taps taps;
  taps.count = 1;
  taps.weights.assign(static_cast<size_t>(to), 1.0);
  double position = scale * 0.5;
  for (int64_t i = 0; i < to; ++i, position += scale) {
    taps.first.push_back(std::min(static_cast<int64_t>(position), from - 1));
  }
  return taps;
}

enum class Method : uint8_t { kNearest, kLinear, kCubic, kArea };

Taps OpenCvTaps(int64_t from, int64_t to, Method method, bool shrinks) {
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  const bool covers = method == Method::kArea && shrinks;
  Taps taps;
  taps.count = method == Method::kNearest ? 1
               : method == Method::kCubic ? 4
               : covers                   ? static_cast<int64_t>(std::ceil(scale)) + 1
                                          : 2;
  taps.first.resize(static_cast<size_t>(to));
  taps.weights.resize(static_cast<size_t>(to * taps.count));
  for (int64_t i = 0; i < to; ++i) {
    double* const weights = &taps.weights[static_cast<size_t>(i * taps.count)];
    const auto position = static_cast<double>(i);
    int64_t first;
    if (method == Method::kNearest) {
      first = std::min(static_cast<int64_t>(std::floor(position * scale)), from - 1);
      weights[0] = 1;
    } else if (covers) {
      const double low = position * scale;
      const double high = std::min(low + scale, static_cast<double>(from));
      first = static_cast<int64_t>(std::floor(low));
      for (int64_t k = 0; k < taps.count; ++k) {
        const auto left = static_cast<double>(first + k);
        weights[k] = std::max(std::min(left + 1, high) - std::max(left, low), 0.0) / (high - low);
      }
    } else if (method == Method::kArea) {
      // Of a growing image: linear, but flat inside of what a pixel covers.
      first = static_cast<int64_t>(std::floor(position * scale));
      double part = position + 1 - static_cast<double>(first + 1) / scale;
      part = part <= 0 ? 0 : part - std::floor(part);
      weights[0] = 1 - part;
      weights[1] = part;
    } else {
      const double place = (position + 0.5) * scale - 0.5;
      const double below = std::floor(place);
      const double part = place - below;
      first = static_cast<int64_t>(below);
      if (method == Method::kLinear) {
        weights[0] = 1 - part;
        weights[1] = part;
      } else {
        --first;
        for (int k = 0; k < 4; ++k) weights[k] = Cubic(part + 1 - k, -0.75);
      }
    }
    taps.first[static_cast<size_t>(i)] = first;
  }
  return taps;
}

template <typename In>
void ResizeColumns(const Taps& taps, const In* in, int64_t rows, int64_t columns, int64_t channels,
                   int64_t width, float* out) {
  for (int64_t y = 0; y < rows; ++y, in += columns * channels) {
    for (int64_t x = 0; x < width; ++x) {
      const int64_t first = taps.first[static_cast<size_t>(x)];
      const double* const weight = &taps.weights[static_cast<size_t>(x * taps.count)];
      for (int64_t c = 0; c < channels; ++c) {
        double total = 0;
        for (int64_t k = 0; k < taps.count; ++k) {
          const int64_t column = std::clamp<int64_t>(first + k, 0, columns - 1);
          total += static_cast<double>(in[column * channels + c]) * weight[k];
        }
        *out++ = static_cast<float>(total);
      }
    }
  }
}

void ResizeRows(const Taps& taps, const float* in, int64_t rows, int64_t row_values, int64_t height,
                Arena& scratch, const std::function<void(float*)>& write) {
  auto* const totals = scratch.AllocateArray<double>(static_cast<size_t>(row_values));
  auto* const line = scratch.AllocateArray<float>(static_cast<size_t>(row_values));
  for (int64_t y = 0; y < height; ++y) {
    std::fill_n(totals, row_values, 0.0);
    for (int64_t k = 0; k < taps.count; ++k) {
      const double weight = taps.weights[static_cast<size_t>(y * taps.count + k)];
      if (weight == 0) continue;
      const int64_t row = std::clamp<int64_t>(taps.first[static_cast<size_t>(y)] + k, 0, rows - 1);
      const float* const from = in + row * row_values;
      for (int64_t i = 0; i < row_values; ++i) totals[i] += static_cast<double>(from[i]) * weight;
    }
    for (int64_t i = 0; i < row_values; ++i) line[i] = static_cast<float>(totals[i]);
    write(line);
  }
}

// Taps inside of the axis, as integers.
struct ByteTaps {
  explicit ByteTaps(const Taps& taps) : starts(taps.first), span(taps.count) {
    for (const double weight : taps.weights) {
      const double scaled = weight * (1 << kernels::kByteFractionBits);
      weights.push_back(static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5));
    }
    // Behind the last weight there may be no pixel.
    for (size_t i = 0; i < starts.size(); ++i) {
      int64_t count = span;
      while (count > 0 &&
             weights[i * static_cast<size_t>(span) + static_cast<size_t>(count) - 1] == 0)
        --count;
      counts.push_back(count);
    }
  }

  std::vector<int64_t> starts;
  std::vector<int64_t> counts;
  std::vector<int32_t> weights;
  int64_t span;
};

// Bytes that are rounded and clipped after each pass.
void ResizeBytes(const ByteTaps& across, const ByteTaps& down, const RowValue& image,
                 int64_t height, int64_t width, Arena& scratch, RowOutput& out) {
  const auto rows = static_cast<size_t>(image.shape[0]);
  const auto channels = static_cast<size_t>(image.shape[2]);
  const size_t row_bytes = static_cast<size_t>(image.shape[1]) * channels;
  const size_t values = static_cast<size_t>(width) * channels;
  // A byte behind each line is touched.
  uint8_t* const narrow = scratch.Allocate(rows * values + 1);
  uint8_t* const last = scratch.Allocate(row_bytes + 1);
  std::memcpy(last, image.data + (rows - 1) * row_bytes, row_bytes);
  last[row_bytes] = 0;
  const kernels::ByteSpans spans = {static_cast<size_t>(across.span), across.starts.data(),
                                    across.counts.data(), across.weights.data()};
  for (size_t y = 0; y < rows; ++y) {
    const uint8_t* const line = y + 1 == rows ? last : image.data + y * row_bytes;
    kernels::SumBytePixels(line, channels, spans, static_cast<size_t>(width), narrow + y * values);
  }
  std::vector<const uint8_t*> lines;
  for (size_t y = 0; y < static_cast<size_t>(height); ++y) {
    const auto count = static_cast<size_t>(down.counts[y]);
    lines.clear();
    for (size_t k = 0; k < count; ++k)
      lines.push_back(narrow + (static_cast<size_t>(down.starts[y]) + k) * values);
    kernels::SumByteRows(lines.data(), &down.weights[y * static_cast<size_t>(down.span)], count,
                         values, out.Reserve(values));
    out.Commit();
  }
}

void ResizeByTaps(const Taps& across, const Taps& down, DType dtype, const RowValue& image,
                  int64_t height, int64_t width, Arena& scratch, RowOutput& out) {
  const int64_t rows = image.shape[0], columns = image.shape[1], channels = image.shape[2];
  const int64_t row_values = width * channels;
  const auto values = static_cast<size_t>(row_values);
  auto* const narrow = scratch.AllocateArray<float>(static_cast<size_t>(rows) * values);
  if (dtype == DType::kUint8) {
    ResizeColumns(across, image.data, rows, columns, channels, width, narrow);
  } else {
    ResizeColumns(across, reinterpret_cast<const float*>(image.data), rows, columns, channels,
                  width, narrow);
  }
  ResizeRows(down, narrow, rows, row_values, height, scratch, [&](const float* line) {
    if (dtype == DType::kFloat32) {
      std::memcpy(out.Reserve(values * sizeof(float)), line, values * sizeof(float));
    } else {
      uint8_t* const to = out.Reserve(values);
      for (size_t i = 0; i < values; ++i) {
        to[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(line[i]), 0.0f, 255.0f));
      }
    }
    out.Commit();
  });
}

template <double (*kFilter)(double), int kHalves>
void LikePillow(DType dtype, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                RowOutput& out) {
  constexpr double kRadius = kHalves / 2.0;
  const Taps across = PillowTaps(image.shape[1], width, kFilter, kRadius);
  const Taps down = PillowTaps(image.shape[0], height, kFilter, kRadius);
  if (dtype == DType::kUint8) {
    ResizeBytes(ByteTaps(across), ByteTaps(down), image, height, width, scratch, out);
  } else {
    ResizeByTaps(across, down, dtype, image, height, width, scratch, out);
  }
}

void NearestLikePillow(DType dtype, const RowValue& image, int64_t height, int64_t width,
                       Arena& scratch, RowOutput& out) {
  ResizeByTaps(PillowNearest(image.shape[1], width), PillowNearest(image.shape[0], height), dtype,
               image, height, width, scratch, out);
}

template <Method kMethod>
void LikeOpenCv(DType dtype, const RowValue& image, int64_t height, int64_t width, Arena& scratch,
                RowOutput& out) {
  const bool shrinks = image.shape[0] >= height && image.shape[1] >= width;
  ResizeByTaps(OpenCvTaps(image.shape[1], width, kMethod, shrinks),
               OpenCvTaps(image.shape[0], height, kMethod, shrinks), dtype, image, height, width,
               scratch, out);
}

}  // namespace

ResizeFunction FindPillowMethod(std::string_view method) {
  if (method == "nearest") return NearestLikePillow;
  if (method == "bilinear") return LikePillow<Triangle, 2>;
  if (method == "bicubic") return LikePillow<PillowCubic, 4>;
  if (method == "area") return LikePillow<Box, 1>;
  if (method == "lanczos3") return LikePillow<Lanczos, 6>;
  return nullptr;
}

ResizeFunction FindOpenCvMethod(std::string_view method) {
  if (method == "nearest") return LikeOpenCv<Method::kNearest>;
  if (method == "bilinear") return LikeOpenCv<Method::kLinear>;
  if (method == "bicubic") return LikeOpenCv<Method::kCubic>;
  if (method == "area") return LikeOpenCv<Method::kArea>;
  return nullptr;
}

}  // namespace penstock::expr
