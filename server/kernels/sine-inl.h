// Sine and cosine of vectors of float, with the bits of server/kernels/sine.h: computed in float64, and left to the single value's
// way where it is not sure how the extended precision would round. So it does not matter that the order of operations is another one
// here, nor whether products are rounded.
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

// The sine of x + kQuarters * pi/2, for |x| < kReducible, wrong by less than half of kSineError of its value.
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
