// x ** y for vectors of float, with the bits of every lane alone and of every instruction set:
// float64 is computed in between, so that the result is the true value's rounding but where that
// lies within 1e-8 units in the last place of a tie.
//
// An integral exponent of at most kFactors multiplies, which is exact as long as 53 bits hold it.
// Any other is exp(y log |x|).
#if defined(PENSTOCK_POWER_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_POWER_INL_H_
#undef PENSTOCK_POWER_INL_H_
#else
#define PENSTOCK_POWER_INL_H_
#endif

#include <limits>

#include "hwy/highway.h"
#include "server/kernels/transcendental-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The lanes of y that are integral and at most kFactors in magnitude: x ** y by squares. Others
// give nonsense.
template <class D, class V>
HWY_INLINE V PowerByFactors(D d, V x, V y) {
  constexpr int kFactorBits = 6;
  const V two = hn::Set(d, 2.0);
  V left = hn::Abs(y);
  V product = hn::Set(d, 1.0);
  for (int bit = 0; bit < kFactorBits; ++bit, x = hn::Mul(x, x)) {
    const V half = hn::Floor(hn::Mul(left, hn::Set(d, 0.5)));
    const auto odd = hn::Ne(hn::Mul(half, two), left);
    product = hn::IfThenElse(odd, hn::Mul(product, x), product);
    left = half;
  }
  return hn::IfThenElse(hn::Lt(y, hn::Zero(d)), hn::Div(hn::Set(d, 1.0), product), product);
}

// C's pow() of numbers, but a square root of -infinity is NaN: NumPy's.
template <class D, class V>
HWY_INLINE V PowerByLogarithm(D d, V x, V y) {
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0);
  const V infinity = hn::Set(d, std::numeric_limits<double>::infinity());
  const V magnitude = hn::Abs(x);
  V power = ExpOp::Apply(d, hn::Mul(y, LogOp::Apply(d, magnitude)));
  power = hn::IfThenElse(hn::Eq(magnitude, one), one, power);
  const auto root = hn::Eq(y, hn::Set(d, 0.5));
  if (!hn::AllFalse(d, root)) power = hn::IfThenElse(root, hn::Sqrt(x), power);  // -0.0 of -0.0
  // Of an exponent beyond 2^53, infinity too, all are even.
  const V half = hn::Mul(y, hn::Set(d, 0.5));
  const auto fraction = hn::Ne(hn::Floor(y), y);
  const auto odd = hn::AndNot(fraction, hn::Ne(hn::Floor(half), half));
  const auto below = hn::Lt(hn::CopySign(one, x), zero);
  power = hn::IfThenElse(hn::And(below, odd), hn::Neg(power), power);
  const auto no_number =
      hn::And(hn::And(fraction, hn::Lt(x, zero)), hn::Or(root, hn::Lt(magnitude, infinity)));
  return hn::IfThenElse(no_number, hn::Set(d, std::numeric_limits<double>::quiet_NaN()), power);
}

template <class D, class V>
HWY_INLINE V PowerOfDoubles(D d, V x, V y) {
  constexpr double kFactors = 63;
  const auto few = hn::And(hn::Eq(hn::Floor(y), y), hn::Le(hn::Abs(y), hn::Set(d, kFactors)));
  V power = PowerByFactors(d, x, y);
  if (!hn::AllTrue(d, few)) power = hn::IfThenElse(few, power, PowerByLogarithm(d, x, y));
  power = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), hn::Add(x, y), power);
  const V one = hn::Set(d, 1.0);
  return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, hn::Zero(d))), one, power);
}

template <class D, class V>
HWY_INLINE V PowerOfFloats(D d, V x, V y) {
  if constexpr (hn::MaxLanes(D()) * sizeof(double) <= HWY_MAX_BYTES) {
    const hn::Rebind<double, D> wide;
    return hn::DemoteTo(d, PowerOfDoubles(wide, hn::PromoteTo(wide, x), hn::PromoteTo(wide, y)));
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, PowerOfFloats(half, hn::UpperHalf(half, x), hn::UpperHalf(half, y)),
                       PowerOfFloats(half, hn::LowerHalf(half, x), hn::LowerHalf(half, y)));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_POWER_INL_H_
