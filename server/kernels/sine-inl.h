// Sine and cosine of vectors, with the bits of server/kernels/sine.h: floats are computed in
// float64, doubles in pairs of float64 (a sum and what it was rounded by), and left to the single
// value's way where it is not sure how the extended precision would round. So it does not matter
// that the order of operations is another one here, nor whether products are rounded.
#if defined(PENSTOCK_SINE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_SINE_INL_H_
#undef PENSTOCK_SINE_INL_H_
#else
#define PENSTOCK_SINE_INL_H_
#endif

#include "hwy/highway.h"
#include "server/kernels/sine.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The sine of x + kQuarters * pi/2, for |x| < kReducible, wrong by less than half of kSineError of
// its value.
template <int kQuarters, class D, class V = hn::Vec<D>>
HWY_INLINE V SineInDoubles(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V multiple = hn::Round(hn::Mul(x, hn::Set(d, kTwoOverPi)));
  V r = hn::NegMulAdd(multiple, hn::Set(d, kHalfPi1), x);
  r = hn::NegMulAdd(multiple, hn::Set(d, kHalfPi2), r);
  r = hn::NegMulAdd(multiple, hn::Set(d, kHalfPi3), r);
  // An integral number's low bits are those of its sum with 1.5 * 2^52.
  const auto quadrant = hn::Add(hn::BitCast(du, hn::Add(multiple, hn::Set(d, 0x1.8p52))),
                                hn::Set(du, uint64_t{kQuarters}));
  const auto is_cosine = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(du, uint64_t{1})));
  const V z = hn::Mul(r, r);
  // Taylor's series: 1 / n!, of n from 17 and 16 downwards.
  constexpr double kSine[] = {
      1.0 / 355687428096000.0, -1.0 / 1307674368000.0, 1.0 / 6227020800.0, -1.0 / 39916800.0,
      1.0 / 362880.0,          -1.0 / 5040.0,          1.0 / 120.0,        -1.0 / 6.0};
  constexpr double kCosine[] = {
      1.0 / 20922789888000.0, -1.0 / 87178291200.0, 1.0 / 479001600.0, -1.0 / 3628800.0,
      1.0 / 40320.0,          -1.0 / 720.0,         1.0 / 24.0,        -0.5};
  const auto coefficient = [&](int i) HWY_ATTR {
    return hn::IfThenElse(is_cosine, hn::Set(d, kCosine[i]), hn::Set(d, kSine[i]));
  };
  V sum = coefficient(0);
  for (int i = 1; i < 8; ++i) sum = hn::MulAdd(sum, z, coefficient(i));
  const V first = hn::IfThenElse(is_cosine, hn::Set(d, 1.0), r);
  const V value = hn::MulAdd(hn::Mul(first, z), sum, first);
  const auto sign = hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(du, uint64_t{2})));
  return hn::BitCast(d, hn::Xor(hn::BitCast(du, value), sign));
}

#if HWY_NATIVE_FMA
// A number as an unevaluated sum: low is what high was rounded by.
template <class V>
struct Twofold {
  V high;
  V low;
};

// Exact. REQUIRES: |a| >= |b|, or a == 0.
template <class V>
HWY_INLINE Twofold<V> SumOf(V a, V b) {
  const V high = hn::Add(a, b);
  return {high, hn::Sub(b, hn::Sub(high, a))};
}
// To some 2^-104 of the product: what a fused multiplication tells of its rounding.
template <class V>
HWY_INLINE Twofold<V> ProductOf(Twofold<V> a, Twofold<V> b) {
  const V high = hn::Mul(a.high, b.high);
  V low = hn::MulSub(a.high, b.high, high);
  low = hn::MulAdd(a.high, b.low, low);
  return {high, hn::MulAdd(a.low, b.high, low)};
}
// a + b, of a coefficient and what is smaller.
template <class V>
HWY_INLINE Twofold<V> SumOf(Twofold<V> a, Twofold<V> b) {
  const Twofold<V> sum = SumOf(a.high, b.high);
  return {sum.high, hn::Add(sum.low, hn::Add(a.low, b.low))};
}

// The sine of x + kQuarters * pi/2, wrong by less than half of kSineErrorDouble of its value; where
// `sure` is not set nothing is said of it.
template <int kQuarters, class D, class V = hn::Vec<D>>
HWY_INLINE Twofold<V> SineInPairs(D d, V x, hn::Mask<D>& sure) {
  const hn::RebindToUnsigned<D> du;
  const V multiple = hn::Round(hn::Mul(x, hn::Set(d, kTwoOverPi)));
  // The first two products and the first difference are exact, the second difference is a pair.
  const V first = hn::NegMulAdd(multiple, hn::Set(d, kHalfPi1), x);
  const V second = hn::Mul(multiple, hn::Set(d, kHalfPi2));
  const V difference = hn::Sub(first, second);
  const V part = hn::Sub(difference, first);
  const V rounded = hn::Sub(hn::Sub(first, hn::Sub(difference, part)), hn::Add(second, part));
  const Twofold<V> r = SumOf(difference, hn::NegMulAdd(multiple, hn::Set(d, kHalfPi3), rounded));
  // What is left of a third part of pi/2 is 2^-100: too much of a small r. Zeros have signs.
  const auto small = hn::Lt(hn::Abs(r.high), hn::Set(d, 0x1p-30));
  sure = hn::And(hn::Lt(hn::Abs(x), hn::Set(d, double{kReducible})),
                 hn::Not(hn::And(small, hn::Ne(multiple, hn::Zero(d)))));
  if constexpr (kQuarters == 0) sure = hn::And(sure, hn::Ne(x, hn::Zero(d)));

  const auto quadrant = hn::Add(hn::BitCast(du, hn::Add(multiple, hn::Set(d, 0x1.8p52))),
                                hn::Set(du, uint64_t{kQuarters}));
  const auto is_cosine = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(du, uint64_t{1})));
  // Taylor's series. What the first three terms behind the first leave is below 2^-17 of the sum:
  // float64 does for it.
  constexpr double kSine[] = {-1.0 / 51090942171709440000.0,
                              1.0 / 121645100408832000.0,
                              -1.0 / 355687428096000.0,
                              1.0 / 1307674368000.0,
                              -1.0 / 6227020800.0,
                              1.0 / 39916800.0,
                              -1.0 / 362880.0};
  constexpr double kCosine[] = {-1.0 / 2432902008176640000.0,
                                1.0 / 6402373705728000.0,
                                -1.0 / 20922789888000.0,
                                1.0 / 87178291200.0,
                                -1.0 / 479001600.0,
                                1.0 / 3628800.0,
                                -1.0 / 40320.0};
  // 1/7!, 1/5!, 1/3! and 1/6!, 1/4!, 1/2! as pairs.
  constexpr double kSinePairs[][2] = {{0x1.a01a01a01a01ap-13, 0x1.a01a01a01a01ap-73},
                                      {-0x1.1111111111111p-7, -0x1.1111111111111p-63},
                                      {0x1.5555555555555p-3, 0x1.5555555555555p-57}};
  constexpr double kCosinePairs[][2] = {{0x1.6c16c16c16c17p-10, -0x1.f49f49f49f49fp-65},
                                        {-0x1.5555555555555p-5, -0x1.5555555555555p-59},
                                        {0.5, 0}};
  const auto choose = [&](double sine, double cosine) HWY_ATTR {
    return hn::IfThenElse(is_cosine, hn::Set(d, cosine), hn::Set(d, sine));
  };
  const Twofold<V> z = ProductOf(r, r);
  V rest = choose(kSine[0], kCosine[0]);
  for (int i = 1; i < 7; ++i) rest = hn::MulAdd(rest, z.high, choose(kSine[i], kCosine[i]));
  Twofold<V> sum = {hn::Mul(rest, z.high), hn::Zero(d)};
  for (int i = 0; i < 3; ++i) {
    if (i > 0) sum = ProductOf(sum, z);
    sum = SumOf(Twofold<V>{choose(kSinePairs[i][0], kCosinePairs[i][0]),
                           choose(kSinePairs[i][1], kCosinePairs[i][1])},
                sum);
  }
  // `sum` is the series' with the opposite sign.
  sum = ProductOf(sum, z);
  const Twofold<V> leading = {hn::IfThenElse(is_cosine, hn::Set(d, 1.0), r.high),
                              hn::IfThenZeroElse(is_cosine, r.low)};
  sum = ProductOf(sum, leading);
  const Twofold<V> value = SumOf(leading, {hn::Neg(sum.high), hn::Neg(sum.low)});
  const auto sign = hn::BitCast(d, hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(du, uint64_t{2}))));
  return {hn::Xor(value.high, sign), hn::Xor(value.low, sign)};
}

// Eight vectors call the same code.
template <int kQuarters, class D, class V>
HWY_NOINLINE V SineOfDoubles(D d, V x) {
  hn::Mask<D> sure;
  const Twofold<V> value = SineInPairs<kQuarters>(d, x, sure);
  const V error = hn::Mul(hn::Abs(value.high), hn::Set(d, kSineErrorDouble));
  const V low = hn::Add(value.high, hn::Sub(value.low, error));
  const V high = hn::Add(value.high, hn::Add(value.low, error));
  sure = hn::And(sure, hn::Eq(low, high));
  if (HWY_LIKELY(hn::AllTrue(d, sure))) return low;
  constexpr size_t kLanes = hn::MaxLanes(D());
  HWY_ALIGN double in[kLanes];
  HWY_ALIGN double out[kLanes];
  HWY_ALIGN double is_sure[kLanes];
  hn::Store(x, d, in);
  hn::Store(low, d, out);
  hn::Store(hn::IfThenElseZero(sure, hn::Set(d, 1.0)), d, is_sure);
  for (size_t i = 0; i < kLanes; ++i) {
    if (is_sure[i] == 0) out[i] = kQuarters == 0 ? SineByX87(in[i]) : CosineByX87(in[i]);
  }
  return hn::Load(d, out);
}
#endif

template <int kQuarters>
struct DoubleSineOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x) {
    constexpr size_t kLanes = hn::MaxLanes(D());
#if HWY_NATIVE_FMA
    if constexpr (kLanes > 1) return SineOfDoubles<kQuarters>(d, x);
#endif
    HWY_ALIGN double values[kLanes];
    hn::Store(x, d, values);
    for (double& value : values) value = kQuarters == 0 ? SineByX87(value) : CosineByX87(value);
    return hn::Load(d, values);
  }
};

template <int kQuarters>
struct SineOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x) {
    constexpr size_t kLanes = hn::MaxLanes(D());
    const hn::CappedTag<double, kLanes> wide;
    const hn::Rebind<float, decltype(wide)> part;
    constexpr size_t kPart = hn::MaxLanes(wide);
    HWY_ALIGN float in[kLanes];
    HWY_ALIGN float out[kLanes];
    hn::Store(x, d, in);
    bool sure = true;
    for (size_t i = 0; i < kLanes; i += kPart) {
      const auto value =
          SineInDoubles<kQuarters>(wide, hn::PromoteTo(wide, hn::Load(part, in + i)));
      const auto error = hn::Mul(hn::Abs(value), hn::Set(wide, kSineError));
      const auto low = hn::DemoteTo(part, hn::Sub(value, error));
      const auto high = hn::DemoteTo(part, hn::Add(value, error));
      hn::Store(low, part, out + i);
      sure = sure && hn::AllTrue(part, hn::Eq(low, high));
    }
    // A zero has a sign; NaN and what is too large to be reduced compare false.
    const auto ordinary =
        hn::And(hn::Lt(hn::Abs(x), hn::Set(d, kReducible)), hn::Not(hn::Eq(x, hn::Zero(d))));
    if (HWY_UNLIKELY(!sure || !hn::AllTrue(d, ordinary))) {
      for (size_t i = 0; i < kLanes; ++i) out[i] = kQuarters == 0 ? SineOf(in[i]) : CosineOf(in[i]);
    }
    return hn::Load(d, out);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_SINE_INL_H_
