#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/number_types.h"

namespace penstock::expr {
namespace {

constexpr int64_t kLengthMax = 1 << 20;

// Without the special cases of std::complex, whose products look for infinities.
struct Complex {
  double real;
  double imag;
};
Complex operator+(Complex a, Complex b) { return {a.real + b.real, a.imag + b.imag}; }
Complex operator-(Complex a, Complex b) { return {a.real - b.real, a.imag - b.imag}; }
Complex operator*(Complex a, Complex b) {
  return {a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real};
}
// a * -i
Complex Quarter(Complex a) { return {a.imag, -a.real}; }

// exp(-2 pi i k / n) for each k below n, rounded from extended precision, so that all machines have the same.
std::vector<Complex> RootsOfOne(int64_t n) {
  constexpr long double kTurn = 6.283185307179586476925286766559005768L;
  std::vector<Complex> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) {
    const long double angle = kTurn * static_cast<long double>(k) / static_cast<long double>(n);
    roots[static_cast<size_t>(k)] = {static_cast<double>(std::cos(angle)),
                                     static_cast<double>(-std::sin(angle))};
  }
  return roots;
}

// The discrete Fourier transform of one length: J. Cooley and J. Tukey's, 1965, of any factors, of which 4 and 2 have code of their own.
//
// Threads:  any; constant.
// Cost:     O(n * the sum of n's prime factors).
class Transform {
 public:
  explicit Transform(int64_t n) : n_(n), roots_(RootsOfOne(n)) {
    for (int64_t p : {4, 2, 3, 5}) {
      for (; n % p == 0; n /= p) factors_.push_back(p);
    }
    for (int64_t p = 7; p * p <= n; p += 2) {
      for (; n % p == 0; n /= p) factors_.push_back(p);
    }
    if (n > 1) factors_.push_back(n);
    // The last one is that of the innermost transforms, of which 4 and 2 are read at once.
    std::reverse(factors_.begin(), factors_.end());
    for (const int64_t p : factors_) largest_ = std::max(largest_, p);
  }

  int64_t largest() const { return largest_; }

  // `in` and `out` do not overlap; `scratch` has room for the largest factor.
  void Run(const Complex* in, Complex* out, Complex* scratch) const {
    Run(in, 1, out, n_, factors_.data(), scratch);
  }

 private:
  // Of every stride-th of the values, whose roots of one are every stride-th of all.
  void Run(const Complex* in, int64_t stride, Complex* out, int64_t n, const int64_t* factor,
           Complex* scratch) const {
    if (n == 1) {
      out[0] = in[0];
      return;
    }
    if (n == 4) {
      const Complex even = in[0] + in[2 * stride], odd = in[0] - in[2 * stride],
                    sum = in[stride] + in[3 * stride],
                    turned = Quarter(in[stride] - in[3 * stride]);
      out[0] = even + sum;
      out[1] = odd + turned;
      out[2] = even - sum;
      out[3] = odd - turned;
      return;
    }
    if (n == 2) {
      out[0] = in[0] + in[stride];
      out[1] = in[0] - in[stride];
      return;
    }
    const int64_t p = *factor, m = n / p;
    for (int64_t r = 0; r < p; ++r)
      Run(in + r * stride, stride * p, out + r * m, m, factor + 1, scratch);
    const Complex* const roots = roots_.data();
    if (p == 4) {
      for (int64_t k = 0; k < m; ++k) {
        const Complex a = out[k], b = out[m + k] * roots[k * stride],
                      c = out[2 * m + k] * roots[2 * k * stride],
                      d = out[3 * m + k] * roots[3 * k * stride];
        const Complex even = a + c, odd = a - c, sum = b + d, turned = Quarter(b - d);
        out[k] = even + sum;
        out[m + k] = odd + turned;
        out[2 * m + k] = even - sum;
        out[3 * m + k] = odd - turned;
      }
    } else if (p == 2) {
      for (int64_t k = 0; k < m; ++k) {
        const Complex a = out[k], b = out[m + k] * roots[k * stride];
        out[k] = a + b;
        out[m + k] = a - b;
      }
    } else {
      StopLook look;
      for (int64_t k = 0; k < m; ++k) {
        for (int64_t r = 0; r < p; ++r) scratch[r] = out[r * m + k] * roots[r * k * stride];
        for (int64_t q = 0; q < p; ++q) {
          look.Did(static_cast<uint64_t>(p));
          Complex sum = scratch[0];
          // The root that r * q turns of one p-th make.
          int64_t turn = 0;
          for (int64_t r = 1; r < p; ++r) {
            turn += q;
            if (turn >= p) turn -= p;
            sum = sum + scratch[r] * roots[turn * m * stride];
          }
          out[q * m + k] = sum;
        }
      }
    }
  }

  const int64_t n_;
  const std::vector<Complex> roots_;
  std::vector<int64_t> factors_;
  int64_t largest_ = 1;
};

class Rfft final : public RowKernel {
 public:
  Rfft(DType dtype, DType result, int64_t length, bool sets_shape)
      : dtype_(dtype),
        result_(result),
        length_(length),
        is_even_(length % 2 == 0),
        sets_shape_(sets_shape),
        transform_(is_even_ ? length / 2 : length),
        roots_(is_even_ ? RootsOfOne(length) : std::vector<Complex>()) {}

  static Shape ShapeOf(const Shape& x, int64_t length) {
    Shape shape = x;
    shape.back() = length / 2 + 1;
    shape.push_back(2);
    return shape;
  }

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& in = arguments[0];
    const Shape shape = ShapeOf(in.shape, length_);
    const auto elements = CountElements(shape);
    if (!elements.ok()) return elements.status();
    if (sets_shape_) out.SetShape(shape);
    const auto count = static_cast<size_t>(length_ / 2 + 1);
    auto* const values = scratch.AllocateArray<double>(static_cast<size_t>(length_) + 1);
    auto* const packed = scratch.AllocateArray<Complex>(static_cast<size_t>(length_));
    auto* const found = scratch.AllocateArray<Complex>(static_cast<size_t>(length_) + 1);
    auto* const factor = scratch.AllocateArray<Complex>(static_cast<size_t>(transform_.largest()));
    const size_t bytes = 2 * count * DTypeSize(result_);
    const int64_t size = in.shape.back();
    const int64_t rows = *elements / static_cast<int64_t>(2 * count);
    const uint8_t* from = in.data;
    if (rows == 0) out.Reserve(0);
    for (int64_t row = 0; row < rows; ++row) {
      Read(from, size, values);
      from += static_cast<size_t>(size) * DTypeSize(dtype_);
      if (is_even_) {
        OfEven(values, packed, found, factor);
      } else {
        for (int64_t i = 0; i < length_; ++i) packed[i] = {values[i], 0};
        transform_.Run(packed, found, factor);
      }
      Write(found, count, out.Reserve(bytes));
      out.Commit();
    }
    if (rows == 0) out.Commit();
    return absl::OkStatus();
  }

 private:
  // As many values as the transform takes: the first ones, or zeros behind all.
  void Read(const uint8_t* from, int64_t size, double* values) const {
    const int64_t taken = std::min(size, length_);
    VisitNumber(dtype_, [&](auto type) {
      using T = decltype(type);
      for (int64_t i = 0; i < taken; ++i) {
        T value;
        std::memcpy(&value, from + static_cast<size_t>(i) * sizeof(T), sizeof(T));
        values[i] = static_cast<double>(value);
      }
    });
    for (int64_t i = taken; i < length_; ++i) values[i] = 0;
  }

  // Two values as one complex number: half as long a transform, taken apart afterwards.
  void OfEven(const double* values, Complex* packed, Complex* found, Complex* factor) const {
    const int64_t half = length_ / 2;
    for (int64_t i = 0; i < half; ++i) packed[i] = {values[2 * i], values[2 * i + 1]};
    Complex* const whole = packed + half;  // behind what is read
    transform_.Run(packed, whole, factor);
    const Complex first = EvenPart(whole[0], whole[0]), last = OddPart(whole[0], whole[0]);
    found[0] = {(first + last * roots_[0]).real, 0};
    found[half] = {first.real - last.real, 0};
    for (int64_t k = 1, from_end = half - 1; k <= from_end; ++k, --from_end) {
      const Complex a = whole[k], b = whole[from_end];
      found[k] = EvenPart(a, b) + OddPart(a, b) * roots_[k];
      found[from_end] = EvenPart(b, a) + OddPart(b, a) * roots_[from_end];
    }
  }

  // Of the values at even and at odd places, from two values of the whole transform: the k-th and the k-th from its end.
  static Complex EvenPart(Complex a, Complex b) {
    return {(a.real + b.real) * 0.5, (a.imag - b.imag) * 0.5};
  }
  static Complex OddPart(Complex a, Complex b) {
    return {(a.imag + b.imag) * 0.5, (b.real - a.real) * 0.5};
  }

  void Write(const Complex* found, size_t count, uint8_t* to) const {
    for (size_t k = 0; k < count; ++k) {
      if (result_ == DType::kFloat32) {
        const float parts[2] = {static_cast<float>(found[k].real),
                                static_cast<float>(found[k].imag)};
        std::memcpy(to + k * sizeof(parts), parts, sizeof(parts));
      } else {
        std::memcpy(to + k * sizeof(Complex), &found[k], sizeof(Complex));
      }
    }
  }

  const DType dtype_;
  const DType result_;
  const int64_t length_;
  const bool is_even_;
  const bool sets_shape_;
  const Transform transform_;  // of the length, or of half of an even one
  const std::vector<Complex> roots_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& x = arguments[0].type;
  if (!VisitNumber(x.dtype, [](auto) {}) || x.shape.empty()) {
    return WrongArgument("x",
                         absl::StrCat("numbers of one axis at least, found ", TypeToString(x)));
  }
  int64_t length = x.shape.back();
  if (const absl::Status status = ReadConstant(arguments[1], "n", 1, kLengthMax, &length);
      !status.ok())
    return status;
  if (length < 1 || length > kLengthMax) {
    return WrongArgument("n",
                         absl::StrCat("a constant of 1 to ", kLengthMax,
                                      ", where the last axis has no such size: ", TypeToString(x)));
  }
  BoundRowFunction bound;
  bound.type = {x.dtype == DType::kFloat32 ? DType::kFloat32 : DType::kFloat64,
                Rfft::ShapeOf(x.shape, length)};
  bound.kernel =
      std::make_shared<Rfft>(x.dtype, bound.type.dtype, length, HasUnknownSize(bound.type.shape));
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kRegistration({
    .name = "rfft",
    .signature = "rfft(x, n=None)",
    .doc = "The discrete Fourier transform of real numbers along the last axis (numpy.fft.rfft, "
           "tf.signal.rfft): (..., n // 2 + 1, 2), real and imaginary parts.\n"
           "\n"
           "x: numbers of shape (..., size); of float32 the result is float32, else float64.\n"
           "n: of how many values, a constant: the first ones, or zeros behind all; left out, the "
           "size of the axis. Products of small primes are fast.\n"
           "\n"
           "Computed in float64: of float32 nearer to the truth than TensorFlow's and NumPy's.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
