#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/expr/arguments.h"
#include "server/expr/number_types.h"
#include "server/kernels/x87.h"

namespace penstock::expr {
namespace {

constexpr int64_t kLengthMax = 1 << 20;
// A prime factor above this has a transform of its own, which is quicker than its square of
// products.
constexpr int64_t kLargestOfProducts = 50;
// A transform of so many numbers looks for a stop.
constexpr int64_t kLookedAtFrom = 1 << 16;
// Of a number of a short one, as StopLook counts it.
constexpr uint64_t kValueWork = 16;

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

Complex Conjugate(Complex a) { return {a.real, -a.imag}; }

// exp(-2 pi i k / n), rounded from extended precision, so that all machines have the same.
Complex RootOfOne(int64_t k, int64_t n) {
  const kernels::X87 turn = 6.283185307179586476925286766559005768L;
  const auto angle =
      static_cast<long double>(turn * static_cast<long double>(k) / static_cast<long double>(n));
  return {static_cast<double>(kernels::X87(std::cos(angle))),
          static_cast<double>(kernels::X87(-std::sin(angle)))};
}

// That for each k below n.
std::vector<Complex> RootsOfOne(int64_t n) {
  std::vector<Complex> roots(static_cast<size_t>(n));
  for (int64_t k = 0; k < n; ++k) roots[static_cast<size_t>(k)] = RootOfOne(k, n);
  return roots;
}

class PrimeTransform;

// The discrete Fourier transform of one length: J. Cooley and J. Tukey's, 1965, of any factors, of
// which 4 and 2 have code of their own, and large primes a transform of their own.
//
// Threads:  any; constant.
// Cost:     O(n * the sum of n's prime factors), of which a large one counts as its logarithm.
class Transform {
 public:
  explicit Transform(int64_t n);
  ~Transform();

  // How many numbers Run() needs room for: none for a power of two.
  int64_t scratch() const { return scratch_; }

  // `in`, `out` and `scratch` do not overlap.
  void Run(const Complex* in, Complex* out, Complex* scratch) const {
    Run(in, 1, out, n_, factors_.data(), scratch);
  }

 private:
  struct Factor {
    int64_t p;
    std::unique_ptr<const PrimeTransform> of_its_own;  // null of a small one
  };

  // Of every stride-th of the values, whose roots of one are every stride-th of all.
  void Run(const Complex* in, int64_t stride, Complex* out, int64_t n, const Factor* factor,
           Complex* scratch) const;

  const int64_t n_;
  const std::vector<Complex> roots_;
  std::vector<Factor> factors_;
  int64_t scratch_ = 0;
};

// The discrete Fourier transform of a large prime length p: L. Bluestein, "A linear filtering
// approach to the computation of discrete Fourier transform", 1970. Since 2 k q = k^2 + q^2 - (q -
// k)^2, it is a convolution with exp(pi i k^2 / p), which two transforms of a power of two make.
//
// Threads:  any; constant.
// Cost:     O(p * log p).
class PrimeTransform {
 public:
  explicit PrimeTransform(int64_t p)
      : p_(p),
        size_(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(2 * p - 1)))),
        transform_(size_),
        chirp_(static_cast<size_t>(p)),
        filter_(static_cast<size_t>(size_)) {
    std::vector<Complex> filter(static_cast<size_t>(size_));
    const double scale = 1.0 / static_cast<double>(size_);  // exact
    for (int64_t k = 0; k < p; ++k) {
      const Complex root = RootOfOne(k * k % (2 * p), 2 * p);
      chirp_[static_cast<size_t>(k)] = root;
      // The same in both directions from 0, in a circle.
      filter[static_cast<size_t>(k)] = filter[static_cast<size_t>((size_ - k) % size_)] = {
          root.real * scale, -root.imag * scale};
    }
    transform_.Run(filter.data(), filter_.data(), nullptr);
  }

  int64_t scratch() const { return 2 * size_; }

  // Of the first p numbers of `scratch`; the result goes to every stride-th place of `out`.
  void Run(Complex* scratch, Complex* out, int64_t stride) const {
    Complex* const values = scratch;
    Complex* const found = scratch + size_;
    for (int64_t k = 0; k < p_; ++k) values[k] = values[k] * chirp_[static_cast<size_t>(k)];
    std::fill(values + p_, values + size_, Complex{0, 0});
    transform_.Run(values, found, nullptr);
    // Backwards by a transform forwards, of conjugates.
    for (int64_t k = 0; k < size_; ++k)
      found[k] = Conjugate(found[k] * filter_[static_cast<size_t>(k)]);
    transform_.Run(found, values, nullptr);
    for (int64_t q = 0; q < p_; ++q)
      out[q * stride] = Conjugate(values[q]) * chirp_[static_cast<size_t>(q)];
  }

 private:
  const int64_t p_;
  const int64_t size_;  // a power of two, without a wrap around
  const Transform transform_;
  std::vector<Complex> chirp_;   // exp(-pi i k^2 / p)
  std::vector<Complex> filter_;  // the transform of what is convolved with, by size_
};

Transform::~Transform() = default;

Transform::Transform(int64_t n) : n_(n), roots_(RootsOfOne(n)) {
  const auto take = [&](int64_t p) {
    for (; n % p == 0; n /= p) factors_.push_back({p, nullptr});
  };
  for (const int64_t p : {4, 2, 3, 5}) take(p);
  for (int64_t p = 7; p * p <= n; p += 2) take(p);
  if (n > 1) factors_.push_back({n, nullptr});
  // The last one is that of the innermost transforms, of which 4 and 2 are read at once.
  std::reverse(factors_.begin(), factors_.end());
  for (Factor& factor : factors_) {
    if (factor.p % 2 == 0) continue;  // 2 and 4 need no room
    if (factor.p > kLargestOfProducts)
      factor.of_its_own = std::make_unique<const PrimeTransform>(factor.p);
    scratch_ = std::max(scratch_, factor.of_its_own ? factor.of_its_own->scratch() : factor.p);
  }
}

void Transform::Run(const Complex* in, int64_t stride, Complex* out, int64_t n,
                    const Factor* factor, Complex* scratch) const {
  if (n == 1) {
    out[0] = in[0];
    return;
  }
  if (n == 4) {
    const Complex even = in[0] + in[2 * stride], odd = in[0] - in[2 * stride],
                  sum = in[stride] + in[3 * stride], turned = Quarter(in[stride] - in[3 * stride]);
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
  const int64_t p = factor->p, m = n / p;
  for (int64_t r = 0; r < p; ++r)
    Run(in + r * stride, stride * p, out + r * m, m, factor + 1, scratch);
  // Of a large one: some milliseconds.
  if (n >= kLookedAtFrom) CheckStop();
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
      if (const PrimeTransform* const own = factor->of_its_own.get(); own != nullptr) {
        look.Did(static_cast<uint64_t>(own->scratch()));
        own->Run(scratch, out + k, m);
        continue;
      }
      look.Did(static_cast<uint64_t>(p * p));
      for (int64_t q = 0; q < p; ++q) {
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
    auto* const factor = scratch.AllocateArray<Complex>(static_cast<size_t>(transform_.scratch()));
    const size_t bytes = 2 * count * DTypeSize(result_);
    const int64_t size = in.shape.back();
    const int64_t rows = *elements / static_cast<int64_t>(2 * count);
    const uint8_t* from = in.data;
    if (rows == 0) out.Reserve(0);
    StopLook look;
    for (int64_t row = 0; row < rows; ++row) {
      look.Did(static_cast<uint64_t>(length_) * kValueWork);
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

  // Of the values at even and at odd places, from two values of the whole transform: the k-th and
  // the k-th from its end.
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
    .doc =
        "The discrete Fourier transform of real numbers along the last axis (numpy.fft.rfft, "
        "tf.signal.rfft): (..., n // 2 + 1, 2), real and imaginary parts.\n"
        "\n"
        "x: numbers of shape (..., size); of float32 the result is float32, else float64.\n"
        "n: of how many values, a constant: the first ones, or zeros after all; left out, the "
        "size of the axis. Products of small primes are fastest.\n"
        "\n"
        "Computed in float64, so for float32 nearer to the truth than TensorFlow's and NumPy's. "
        "The "
        "transform is J. Cooley and J. Tukey's (1965); a prime factor above 50 is L. Bluestein's "
        "(A linear filtering approach to the computation of discrete Fourier transform, 1970).",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
