#include "server/image/affine.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "server/expr/arguments.h"
#include "server/kernels/mix_pixels.h"
#include "server/kernels/sine.h"

namespace penstock::expr {
namespace {

constexpr double kRadians = 0x1.921fb54442d18p+1 / 180.0;

// Rounded to 15 decimals as Python rounds: the nearest number to what is printed with so many.
double Rounded(double x) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), x, std::chars_format::fixed, 15).ptr;
  double rounded = 0;
  std::from_chars(text, end, rounded);
  return rounded;
}

// Which pixel a coordinate lies in, or -1.
int64_t PixelAt(double coordinate, int64_t size) {
  return coordinate >= 0 && coordinate < static_cast<double>(size)
             ? static_cast<int64_t>(coordinate)
             : -1;
}

int64_t Within(int64_t index, int64_t size) { return std::clamp<int64_t>(index, 0, size - 1); }

// ---- nearest: pixels are copied, whatever they are made of
// ------------------------------------------------------------------

// Copies pixels of kBytes bytes, or of as many as it is told where that is 0.
template <int kBytes>
class PixelWriter {
 public:
  PixelWriter(const ImageView& image, const PixelValue& fill)
      : pixels_(image.pixels),
        bytes_(image.channels * image.element_bytes),
        last_(image.height * image.width - 1) {
    for (int64_t c = 0; c < image.channels; ++c)
      fill_.append(reinterpret_cast<const char*>(fill.bytes),
                   static_cast<size_t>(image.element_bytes));
  }
  // Pixel number `index` of the image.
  void Put(int64_t index, uint8_t*& out) const {
    const uint8_t* const from = pixels_ + index * bytes();
    // Four bytes are moved at once where three are meant: the fourth is overwritten by the next
    // pixel.
    if (kBytes == 3 && index != last_) {
      std::memcpy(out, from, 4);
    } else {
      std::memcpy(out, from, static_cast<size_t>(bytes()));
    }
    out += bytes();
  }
  void PutRun(int64_t index, int64_t count, uint8_t*& out) const {
    std::memcpy(out, pixels_ + index * bytes(), static_cast<size_t>(count * bytes()));
    out += count * bytes();
  }
  void Fill(int64_t count, uint8_t*& out) const {
    for (; count > 0; --count, out += bytes())
      std::memcpy(out, fill_.data(), static_cast<size_t>(bytes()));
  }

 private:
  int64_t bytes() const { return kBytes == 0 ? bytes_ : kBytes; }

  const uint8_t* pixels_;
  const int64_t bytes_;
  const int64_t last_;
  std::string fill_;
};

// Pillow takes a way of its own where rows stay rows. Its coordinates are sums of steps, each
// rounded.
template <int kBytes>
NextRows StartScaled(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  // Those that are inside of the image follow one another.
  int64_t before = 0;
  std::vector<int64_t> columns;
  double x = m[2] + m[0] * 0.5;
  for (int64_t i = 0; i < image.width; ++i, x += m[0]) {
    const int64_t column = PixelAt(x, image.width);
    if (column >= 0) {
      if (columns.empty()) before = i;
      columns.push_back(column);
    }
  }
  bool is_run = !columns.empty();
  for (size_t i = 1; i < columns.size(); ++i) is_run = is_run && columns[i] == columns[i - 1] + 1;
  return [image, before, columns = std::move(columns), is_run, step = m[4], y = m[5] + m[4] * 0.5,
          writer = PixelWriter<kBytes>(image, fill)](int64_t num_rows, uint8_t* out) mutable {
    const auto inside = static_cast<int64_t>(columns.size());
    for (int64_t i = 0; i < num_rows; ++i, y += step) {
      const int64_t row = PixelAt(y, image.height);
      if (row < 0) {
        writer.Fill(image.width, out);
        continue;
      }
      writer.Fill(before, out);
      if (is_run) {
        writer.PutRun(row * image.width + columns[0], inside, out);
      } else {
        for (const int64_t column : columns) writer.Put(row * image.width + column, out);
      }
      writer.Fill(image.width - before - inside, out);
    }
  };
}

// Coordinates of 16 bits and as many behind the point, which is Pillow's way where they suffice.
int64_t Fixed(double value) { return static_cast<int64_t>(std::floor(value * 65536.0 + 0.5)); }

int64_t FloorDivide(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// Indices from `first` on, below `end`.
struct Span {
  int64_t first;
  int64_t end;
};

// Those for which start + index * step is at least 0 and below `limit`.
Span Narrowed(Span span, int64_t start, int64_t step, int64_t limit) {
  if (step == 0) return start >= 0 && start < limit ? span : Span{span.first, span.first};
  const int64_t low = step > 0 ? -start : start - (limit - 1);
  const int64_t high = step > 0 ? limit - 1 - start : start;
  const int64_t size = std::abs(step);
  // low <= index * size <= high
  const int64_t first = std::clamp(-FloorDivide(-low, size), span.first, span.end);
  return {first, std::clamp(FloorDivide(high, size) + 1, first, span.end)};
}

template <int kBytes>
NextRows StartFixed(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  return
      [image, step_x = Fixed(m[0]), step_y = Fixed(m[3]), row_x = Fixed(m[1]), row_y = Fixed(m[4]),
       x0 = Fixed(m[2] + m[0] * 0.5 + m[1] * 0.5), y0 = Fixed(m[5] + m[3] * 0.5 + m[4] * 0.5),
       writer = PixelWriter<kBytes>(image, fill)](int64_t num_rows, uint8_t* out) mutable {
        for (int64_t i = 0; i < num_rows; ++i, x0 += row_x, y0 += row_y) {
          Span inside = Narrowed({0, image.width}, x0, step_x, image.width << 16);
          inside = Narrowed(inside, y0, step_y, image.height << 16);
          writer.Fill(inside.first, out);
          int64_t x = x0 + inside.first * step_x, y = y0 + inside.first * step_y;
          for (int64_t k = inside.first; k < inside.end; ++k, x += step_x, y += step_y)
            writer.Put((y >> 16) * image.width + (x >> 16), out);
          writer.Fill(image.width - inside.end, out);
        }
      };
}

// Coordinates beyond those.
template <int kBytes>
NextRows StartFar(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  return [image, m, x0 = m[2] + m[1] * 0.5 + m[0] * 0.5, y0 = m[5] + m[4] * 0.5 + m[3] * 0.5,
          writer = PixelWriter<kBytes>(image, fill)](int64_t num_rows, uint8_t* out) mutable {
    for (int64_t i = 0; i < num_rows; ++i, x0 += m[1], y0 += m[4]) {
      double x = x0, y = y0;
      for (int64_t k = 0; k < image.width; ++k, x += m[0], y += m[3]) {
        const int64_t column = PixelAt(x, image.width), row = PixelAt(y, image.height);
        if (column >= 0 && row >= 0) {
          writer.Put(row * image.width + column, out);
        } else {
          writer.Fill(1, out);
        }
      }
    }
  };
}

bool FitsFixed(const AffineMatrix& m, const ImageView& image) {
  const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
  for (const auto& [x, y] : {std::pair(0.0, 0.0), {width, height}, {0.0, height}, {width, 0.0}}) {
    if (!(std::fabs(x * m[0] + y * m[1] + m[2]) < 32768.0 &&
          std::fabs(x * m[3] + y * m[4] + m[5]) < 32768.0)) {
      return false;
    }
  }
  return true;
}

template <int kBytes>
NextRows StartNearestOf(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  if (m[1] == 0 && m[3] == 0) return StartScaled<kBytes>(m, fill, image);
  if (FitsFixed(m, image)) return StartFixed<kBytes>(m, fill, image);
  return StartFar<kBytes>(m, fill, image);
}

NextRows StartNearest(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  switch (image.channels * image.element_bytes) {
    case 1:
      return StartNearestOf<1>(m, fill, image);
    case 3:
      return StartNearestOf<3>(m, fill, image);
    case 4:
      return StartNearestOf<4>(m, fill, image);
    default:
      return StartNearestOf<0>(m, fill, image);
  }
}

// ---- bilinear and bicubic: values are computed in float64
// -------------------------------------------------------------------

template <typename T>
T FromDouble(double value) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
  } else {
    return static_cast<T>(value);
  }
}

// Values of an image are subtracted as what they are, results of that in float64, as Pillow does
// it.
template <typename T>
double Linear(T v1, T v2, double d) {
  return v1 + (v2 - v1) * d;
}

// The place is the share `d` behind the second of four.
template <typename T>
double Cubic(T v1, T v2, T v3, T v4, double d) {
  const double p2 = -v1 + v3;
  const double p3 = 2 * (v1 - v2) + v3 - v4;
  const double p4 = -v1 + v2 - v3 + v4;
  return v2 + d * (p2 + d * (p3 + d * p4));
}

// The value of one channel at a place: (x, y) is the upper left one of the pixels around it.
template <typename T>
struct Bilinear {
  static constexpr int kPixels = 2;  // in each direction
  static constexpr int64_t kBefore = 0;
  static constexpr auto kKernel = kernels::MixBilinear;

  static double Across(const T* row, const int64_t (&columns)[kPixels], double dx) {
    return Linear(row[columns[0]], row[columns[1]], dx);
  }
  static double Down(const double (&values)[kPixels], double dy) {
    return Linear(values[0], values[1], dy);
  }
};

template <typename T>
struct Bicubic {
  static constexpr int kPixels = 4;
  static constexpr int64_t kBefore = 1;
  static constexpr auto kKernel = kernels::MixBicubic;

  static double Across(const T* row, const int64_t (&columns)[kPixels], double dx) {
    return Cubic(row[columns[0]], row[columns[1]], row[columns[2]], row[columns[3]], dx);
  }
  static double Down(const double (&values)[kPixels], double dy) {
    return Cubic(values[0], values[1], values[2], values[3], dy);
  }
};

template <typename T, template <typename> class Method, int kChannels>
void MixPixel(const ImageView& image, double x, double y, T* out) {
  using M = Method<T>;
  const int64_t channels = kChannels == 0 ? image.channels : kChannels;
  const double left = std::floor(x), top = std::floor(y);
  const double dx = x - left, dy = y - top;
  const int64_t first_column = static_cast<int64_t>(left) - M::kBefore;
  const int64_t first_row = static_cast<int64_t>(top) - M::kBefore;
  int64_t columns[M::kPixels];
  for (int i = 0; i < M::kPixels; ++i)
    columns[i] = Within(first_column + i, image.width) * channels;
  // A row that is not there gives what the one before it gave.
  const T* rows[M::kPixels];
  rows[0] = reinterpret_cast<const T*>(image.row(Within(first_row, image.height)));
  for (int i = 1; i < M::kPixels; ++i) {
    const int64_t row = first_row + i;
    rows[i] =
        row >= 0 && row < image.height ? reinterpret_cast<const T*>(image.row(row)) : rows[i - 1];
  }
  for (int64_t c = 0; c < channels; ++c) {
    double values[M::kPixels];
    for (int i = 0; i < M::kPixels; ++i) values[i] = M::Across(rows[i] + c, columns, dx);
    out[c] = FromDouble<T>(M::Down(values, dy));
  }
}

// Where a condition holds, which changes at most once.
template <typename Condition>
Span Where(Span span, const Condition& holds) {
  if (span.first == span.end) return span;
  const bool at_first = holds(span.first), at_last = holds(span.end - 1);
  if (at_first == at_last) return at_first ? span : Span{span.first, span.first};
  int64_t low = span.first, high = span.end - 1;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (holds(middle) == at_first ? low : high) = middle;
  }
  return at_first ? Span{span.first, high} : Span{high, span.end};
}

// Those whose places are at least `low` and below (x, y): along a row coordinates rise or fall,
// rounded ones, too.
Span Inside(Span span, const kernels::PixelLine& line, double low, double x, double y) {
  span = Where(span, [&](int64_t i) { return line.X(i) >= low; });
  span = Where(span, [&](int64_t i) { return line.X(i) < x; });
  span = Where(span, [&](int64_t i) { return line.Y(i) >= low; });
  return Where(span, [&](int64_t i) { return line.Y(i) < y; });
}

template <typename T, template <typename> class Method, int kChannels>
NextRows StartMixedOf(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  T outside;
  std::memcpy(&outside, fill.bytes, sizeof(T));
  return [image, m, outside, row = int64_t{0}](int64_t num_rows, uint8_t* to) mutable {
    using M = Method<T>;
    T* out = reinterpret_cast<T*>(to);
    const int64_t channels = kChannels == 0 ? image.channels : kChannels;
    const auto width = static_cast<double>(image.width), height = static_cast<double>(image.height);
    for (int64_t i = 0; i < num_rows; ++i, ++row, out += image.width * channels) {
      const double y = static_cast<double>(row) + 0.5;
      const kernels::PixelLine line = {m[0], m[1] * y, m[2], m[3], m[4] * y, m[5]};
      const Span all = {0, image.width};
      const Span inside = Inside(all, line, -0.5, width - 0.5, height - 0.5);
      // The kernel takes those around which all pixels are there and are not the image's last one.
      Span inner = {inside.first, inside.first};
      if constexpr (std::is_same_v<T, uint8_t> && (kChannels == 3 || kChannels == 4)) {
        constexpr int kBehind = M::kPixels - M::kBefore - 1;
        inner = Inside(inside, line, M::kBefore, width - kBehind, height - kBehind - 1);
        const kernels::PixelGrid grid = {image.pixels, static_cast<size_t>(image.row_bytes()),
                                         static_cast<size_t>(channels)};
        M::kKernel(grid, line, inner.first, inner.end, out + inner.first * channels);
      }
      const auto mix = [&](Span span) {
        for (int64_t k = span.first; k < span.end; ++k)
          MixPixel<T, Method, kChannels>(image, line.X(k), line.Y(k), out + k * channels);
      };
      mix({inside.first, inner.first});
      mix({inner.end, inside.end});
      std::fill_n(out, inside.first * channels, outside);
      std::fill_n(out + inside.end * channels, (image.width - inside.end) * channels, outside);
    }
  };
}

template <typename T, template <typename> class Method>
NextRows StartMixed(const AffineMatrix& m, const PixelValue& fill, const ImageView& image) {
  switch (image.channels) {
    case 1:
      return StartMixedOf<T, Method, 1>(m, fill, image);
    case 3:
      return StartMixedOf<T, Method, 3>(m, fill, image);
    case 4:
      return StartMixedOf<T, Method, 4>(m, fill, image);
    default:
      return StartMixedOf<T, Method, 0>(m, fill, image);
  }
}

template <template <typename> class Method>
NextRows StartMixed(const AffineMatrix& m, const PixelValue& fill, DType dtype,
                    const ImageView& image) {
  return dtype == DType::kUint8 ? StartMixed<uint8_t, Method>(m, fill, image)
                                : StartMixed<float, Method>(m, fill, image);
}

}  // namespace

absl::StatusOr<AffineOptions> ReadAffineOptions(const Argument& method, const Argument& fill,
                                                DType dtype) {
  AffineOptions options;
  std::string name = "nearest";
  if (const absl::Status status = FirstError({ReadConstant(method, "method", &name),
                                              ReadPixelValue(fill, "fill", dtype, &options.fill)});
      !status.ok()) {
    return status;
  }
  if (name == "nearest") {
    options.interpolation = Interpolation::kNearest;
  } else if (name == "bilinear") {
    options.interpolation = Interpolation::kBilinear;
  } else if (name == "bicubic") {
    options.interpolation = Interpolation::kBicubic;
  } else {
    return WrongArgument("method", "\"nearest\", \"bilinear\" or \"bicubic\", a constant");
  }
  return options;
}

AffineMatrix RotationMatrix(double degrees, int64_t height, int64_t width) {
  double turn = std::fmod(degrees, 360.0);
  if (turn < 0) turn += 360.0;
  const double angle = -(turn * kRadians);
  const double sine = kernels::SineByX87(angle), cosine = kernels::CosineByX87(angle);
  AffineMatrix m = {Rounded(cosine), Rounded(sine), 0, Rounded(-sine), Rounded(cosine), 0};
  const double x = static_cast<double>(width) / 2, y = static_cast<double>(height) / 2;
  m[2] = m[0] * -x + m[1] * -y + x;
  m[5] = m[3] * -x + m[4] * -y + y;
  return m;
}

AffineMatrix MovementMatrix(const Movement& movement, int64_t height, int64_t width) {
  const double turn = movement.degrees * kRadians;
  const double shear_x = movement.shear_x_degrees * kRadians;
  const double shear_y = movement.shear_y_degrees * kRadians;
  const double tangent_x = kernels::SineByX87(shear_x) / kernels::CosineByX87(shear_x);
  const double cosine_y = kernels::CosineByX87(shear_y);
  const double a = kernels::CosineByX87(turn - shear_y) / cosine_y;
  const double c = kernels::SineByX87(turn - shear_y) / cosine_y;
  const double b = -a * tangent_x - kernels::SineByX87(turn);
  const double d = -c * tangent_x + kernels::CosineByX87(turn);
  // The determinant of [[a, b], [c, d]] is 1.
  AffineMatrix m = {d / movement.scale,  -b / movement.scale, 0,
                    -c / movement.scale, a / movement.scale,  0};
  const double x = static_cast<double>(width) * 0.5, y = static_cast<double>(height) * 0.5;
  m[2] = m[0] * (-x - movement.translate_x) + m[1] * (-y - movement.translate_y) + x;
  m[5] = m[3] * (-x - movement.translate_x) + m[4] * (-y - movement.translate_y) + y;
  return m;
}

NextRows StartAffine(const AffineMatrix& matrix, const AffineOptions& options, DType dtype,
                     const ImageView& image) {
  switch (options.interpolation) {
    case Interpolation::kBilinear:
      return StartMixed<Bilinear>(matrix, options.fill, dtype, image);
    case Interpolation::kBicubic:
      return StartMixed<Bicubic>(matrix, options.fill, dtype, image);
    case Interpolation::kNearest:
      break;
  }
  return StartNearest(matrix, options.fill, image);
}

}  // namespace penstock::expr
