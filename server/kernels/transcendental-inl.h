// exp, log, log1p and tanh for vectors of float and double: at most 3 units in the last place from
// the true value, and the same bits on every instruction set, because multiplication and addition
// stay separate and every step is a basic operation.
//
// exp, expm1   x = k ln 2 + r with |r| <= ln(2)/2, ln 2 in two parts (Cody and Waite); Taylor's
// series in r. log          x = 2^k m with m in [sqrt(1/2), sqrt(2)); f = m - 1, s = f / (2 + f);
//              log(m) = 2 atanh(s) = f - s (f - R), R = 2 s^2/3 + 2 s^4/5 + …
// log1p        the same with u = 1 + x and the rounding error of that sum, over u, added.
// tanh         t / (t + 2) with t = expm1(2 |x|).
#if defined(PENSTOCK_TRANSCENDENTAL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_TRANSCENDENTAL_INL_H_
#undef PENSTOCK_TRANSCENDENTAL_INL_H_
#else
#define PENSTOCK_TRANSCENDENTAL_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <typename T>
struct MathConstants;

template <>
struct MathConstants<float> {
  static constexpr float kLn2High = 0.693359375f;  // 9 bits: k * kLn2High is exact
  static constexpr float kLn2Low = -2.12194440e-4f;
  static constexpr float kExpMax = 89.0f;
  static constexpr float kExpMin = -104.0f;
  static constexpr float kTanhMax = 10.0f;  // 1 from here on
  static constexpr int kMantissaBits = 23;
  static constexpr int kBias = 127;
  static constexpr int kExpTerms = 8;
  static constexpr int kLogTerms = 6;
};

template <>
struct MathConstants<double> {
  static constexpr double kLn2High = 0x1.62e42fee00000p-1;  // 33 bits
  static constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
  static constexpr double kExpMax = 710.0;
  static constexpr double kExpMin = -746.0;
  static constexpr double kTanhMax = 20.0;
  static constexpr int kMantissaBits = 52;
  static constexpr int kBias = 1023;
  static constexpr int kExpTerms = 14;
  static constexpr int kLogTerms = 11;
};

// 2^k for an integral k in the range of normal numbers.
template <class D, class V>
HWY_INLINE V PowerOfTwo(D d, V k) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  // Adding 1.5 * 2^mantissa leaves k in the sum's low bits, without a conversion, which SSE4 lacks
  // for 64 bits.
  constexpr T kMagic = T(3) * (uint64_t{1} << (C::kMantissaBits - 1));
  const hn::RebindToUnsigned<D> du;
  const V biased = hn::Add(k, hn::Set(d, kMagic + C::kBias));
  return hn::BitCast(d, hn::ShiftLeft<C::kMantissaBits>(hn::BitCast(du, biased)));
}

// 1/n! for n = 2 …: coefficients of (expm1(r) - r) / r^2.
template <class D, class V>
HWY_INLINE V ExpSeries(D d, V r) {
  using T = hn::TFromD<D>;
  constexpr int kTerms = MathConstants<T>::kExpTerms;
  constexpr double kInverse[] = {1.0,
                                 1.0,
                                 1.0 / 2,
                                 1.0 / 6,
                                 1.0 / 24,
                                 1.0 / 120,
                                 1.0 / 720,
                                 1.0 / 5040,
                                 1.0 / 40320,
                                 1.0 / 362880,
                                 1.0 / 3628800,
                                 1.0 / 39916800,
                                 1.0 / 479001600,
                                 1.0 / 6227020800,
                                 1.0 / 87178291200};
  V sum = hn::Set(d, static_cast<T>(kInverse[kTerms]));
  for (int n = kTerms - 1; n >= 2; --n) {
    sum = hn::Add(hn::Mul(sum, r), hn::Set(d, static_cast<T>(kInverse[n])));
  }
  return sum;
}

// expm1 of the reduced argument; `k` receives the power of two. `x` within the limits of exp.
template <class D, class V>
HWY_INLINE V ReducedExpm1(D d, V x, V& k) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  k = hn::Round(hn::Mul(x, hn::Set(d, static_cast<T>(1.44269504088896340736))));
  const V high = hn::Sub(x, hn::Mul(k, hn::Set(d, C::kLn2High)));
  const V low = hn::Mul(k, hn::Set(d, C::kLn2Low));
  const V r = hn::Sub(high, low);
  // What the subtraction rounded away; expm1'(r) is near 1.
  const V lost = hn::Sub(hn::Sub(high, r), low);
  const V square = hn::Mul(r, r);
  const V tail = hn::Add(hn::Mul(square, ExpSeries(d, r)), lost);
  return hn::Add(r, tail);
}

struct ExpOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x) {
    using T = hn::TFromD<D>;
    using C = MathConstants<T>;
    const V one = hn::Set(d, T(1));
    const V clamped = hn::Min(hn::Max(x, hn::Set(d, C::kExpMin)), hn::Set(d, C::kExpMax));
    V k;
    const V p = ReducedExpm1(d, clamped, k);
    // Two factors: the result may be subnormal, and 2^k alone may be infinite.
    const V half = hn::Floor(hn::Mul(k, hn::Set(d, T(0.5))));
    const V result =
        hn::Mul(hn::Mul(hn::Add(one, p), PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(k, half)));
    return hn::IfThenElse(hn::IsNaN(x), x, result);
  }
};

struct TanhOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x) {
    using T = hn::TFromD<D>;
    using C = MathConstants<T>;
    const V one = hn::Set(d, T(1));
    const V magnitude = hn::Min(hn::Abs(x), hn::Set(d, C::kTanhMax));
    V k;
    const V p = ReducedExpm1(d, hn::Add(magnitude, magnitude), k);
    const V power = PowerOfTwo(d, k);
    const V t = hn::Add(hn::Sub(power, one), hn::Mul(power, p));
    const V result = hn::CopySign(hn::Div(t, hn::Add(t, hn::Set(d, T(2)))), x);
    return hn::IfThenElse(hn::IsNaN(x), x, result);
  }
};

// log(1 + f) for f in [sqrt(1/2) - 1, sqrt(2) - 1), with k ln 2 and a small correction added.
template <class D, class V>
HWY_INLINE V LogReduced(D d, V f, V k, V correction) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const V s = hn::Div(f, hn::Add(f, hn::Set(d, T(2))));
  const V z = hn::Mul(s, s);
  V sum = hn::Set(d, static_cast<T>(2.0 / (2 * C::kLogTerms + 1)));
  for (int n = C::kLogTerms - 1; n >= 1; --n) {
    sum = hn::Add(hn::Mul(sum, z), hn::Set(d, static_cast<T>(2.0 / (2 * n + 1))));
  }
  const V r = hn::Mul(sum, z);
  const V low = hn::Add(hn::Mul(k, hn::Set(d, C::kLn2Low)), correction);
  const V tail = hn::Sub(hn::Mul(s, hn::Sub(f, r)), low);
  return hn::Add(hn::Mul(k, hn::Set(d, C::kLn2High)), hn::Sub(f, tail));
}

// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for positive normal x.
template <class D, class V>
HWY_INLINE V SplitExponent(D d, V x, V& k) {
  using T = hn::TFromD<D>;
  using C = MathConstants<T>;
  const hn::RebindToUnsigned<D> du;
  using U = hn::TFromD<decltype(du)>;
  constexpr U kOneBits = U(C::kBias) << C::kMantissaBits;
  // The bits of sqrt(1/2), so that the quotient of exponents is rounded there.
  const U sqrt_half = sizeof(T) == 4 ? U(0x3F3504F3u) : U(0x3FE6A09E667F3BCDull);
  const auto bits = hn::Sub(hn::BitCast(du, x), hn::Set(du, sqrt_half));
  // The exponent, biased to stay positive, becomes a number by way of the mantissa of 2^mantissa.
  const auto biased = hn::ShiftRight<C::kMantissaBits>(hn::Add(bits, hn::Set(du, kOneBits)));
  constexpr T kTwoToMantissa = static_cast<T>(uint64_t{1} << C::kMantissaBits);
  const V number = hn::BitCast(d, hn::Or(biased, hn::BitCast(du, hn::Set(d, kTwoToMantissa))));
  k = hn::Sub(number, hn::Set(d, kTwoToMantissa + C::kBias));
  const auto mantissa = hn::And(bits, hn::Set(du, (U(1) << C::kMantissaBits) - 1));
  return hn::BitCast(d, hn::Add(mantissa, hn::Set(du, sqrt_half)));
}

// What log gives where there is no series: NaN below zero, -inf at zero, +inf and NaN themselves.
template <class D, class V>
HWY_INLINE V LogSpecial(D d, V u, V result) {
  using T = hn::TFromD<D>;
  const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
  const V nan = hn::Set(d, -std::numeric_limits<T>::quiet_NaN());
  result = hn::IfThenElse(hn::Eq(u, infinity), infinity, result);
  result = hn::IfThenElse(hn::Lt(u, hn::Zero(d)), nan, result);
  result = hn::IfThenElse(hn::Eq(u, hn::Zero(d)), hn::Neg(infinity), result);
  return hn::IfThenElse(hn::IsNaN(u), u, result);
}

struct LogOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x) {
    using T = hn::TFromD<D>;
    const V least = hn::Set(d, std::numeric_limits<T>::min());
    const V infinity = hn::Set(d, std::numeric_limits<T>::infinity());
    // Nearly all values are positive, normal and finite, and need no care.
    if (HWY_LIKELY(hn::AllTrue(d, hn::And(hn::Ge(x, least), hn::Lt(x, infinity))))) {
      V k;
      const V m = SplitExponent(d, x, k);
      return LogReduced(d, hn::Sub(m, hn::Set(d, T(1))), k, hn::Zero(d));
    }
    return OfAny(d, x);
  }

 private:
  template <class D, class V>
  static HWY_NOINLINE V OfAny(D d, V x) {
    using T = hn::TFromD<D>;
    using C = MathConstants<T>;
    const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<T>::min()));
    constexpr T kScale = static_cast<T>(uint64_t{1} << C::kMantissaBits);
    const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, kScale)), x);
    V k;
    const V m = SplitExponent(d, scaled, k);
    k = hn::IfThenElse(subnormal, hn::Sub(k, hn::Set(d, T(C::kMantissaBits))), k);
    const V f = hn::Sub(m, hn::Set(d, T(1)));
    return LogSpecial(d, x, LogReduced(d, f, k, hn::Zero(d)));
  }
};

struct Log1pOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x) {
    using T = hn::TFromD<D>;
    const V one = hn::Set(d, T(1));
    const V u = hn::Add(one, x);
    V k;
    const V m = SplitExponent(d, u, k);
    // The rounding error of the sum, exact by Knuth's two-sum.
    const V back = hn::Sub(u, one);
    const V error = hn::Add(hn::Sub(one, hn::Sub(u, back)), hn::Sub(x, back));
    // Without a shift of exponent f is x itself and nothing is lost.
    const auto near = hn::Eq(k, hn::Zero(d));
    const V f = hn::IfThenElse(near, x, hn::Sub(m, one));
    const V correction = hn::IfThenElse(near, hn::Zero(d), hn::Div(error, u));
    const V result = LogSpecial(d, u, LogReduced(d, f, k, correction));
    // log1p(-0.0) is -0.0, and a tiny x is its own logarithm.
    return hn::IfThenElse(hn::Eq(u, one), x, result);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_TRANSCENDENTAL_INL_H_
