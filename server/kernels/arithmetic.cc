#include "server/kernels/arithmetic.h"

#include <cmath>

#include "server/kernels/power.h"
#include "server/kernels/scalar_arithmetic.h"
#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/arithmetic.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"
#include "server/kernels/power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

template <class V>
inline constexpr bool kIsFloat = hwy::IsFloat<hn::TFromD<hn::DFromV<V>>>();

struct AddOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Add(a, b);
  }
};
struct SubtractOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Sub(a, b);
  }
};
struct MultiplyOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    using T = hn::TFromD<D>;
    if constexpr (kIs64<T> && !kIsFloat<V>) {
      return ByLane<ScalarMultiply>::Apply(d, a, b);
    } else {
      return hn::Mul(a, b);
    }
  }
};
struct DivideOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Div(a, b);
  }
};
struct AndOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::And(a, b);
  }
};
struct OrOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Or(a, b);
  }
};
struct XorOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::Xor(a, b);
  }
};
// Where the first is NaN or no greater it wins, as in NumPy: minimum(0.0, -0.0) is 0.0.
struct MinimumOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    if constexpr (kIsFloat<V>) {
      return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(a)), a, b);
    } else {
      return ByLane<ScalarMinimum>::Apply(d, a, b);
    }
  }
};
struct MaximumOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    if constexpr (kIsFloat<V>) {
      return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(a)), a, b);
    } else {
      return ByLane<ScalarMaximum>::Apply(d, a, b);
    }
  }
};
struct CopysignOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D, V a, V b) {
    return hn::CopySign(a, b);
  }
};
// NaN is no value: the other one, if it is a number.
struct FminOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    if constexpr (kIsFloat<V>) {
      return hn::IfThenElse(hn::Or(hn::Le(a, b), hn::IsNaN(b)), a, b);
    } else {
      return ByLane<ScalarMinimum>::Apply(d, a, b);
    }
  }
};
struct FmaxOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    if constexpr (kIsFloat<V>) {
      return hn::IfThenElse(hn::Or(hn::Ge(a, b), hn::IsNaN(b)), a, b);
    } else {
      return ByLane<ScalarMaximum>::Apply(d, a, b);
    }
  }
};
// Exact, with the sign of a: subtraction only.
struct ScalarFmod {
  template <typename T>
  static T Apply(T a, T b) {
    return std::fmod(a, b);
  }
};
struct PowerOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    if constexpr (std::is_same_v<hn::TFromD<D>, float>) {
      return PowerOfFloats(d, a, b);
    } else {
      return ByLane<ScalarPower>::Apply(d, a, b);
    }
  }
};
template <class Op>
struct Reverse {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    return Op::Apply(d, b, a);
  }
};

template <class Scalar>
struct ReverseScalar {
  template <typename T>
  static T Apply(T a, T b) {
    return Scalar::Apply(b, a);
  }
};

// As long as what goes lane by lane: more vectors at once would gain nothing.
template <>
inline constexpr bool kIsByLane<PowerOp> = true;
template <>
inline constexpr bool kIsByLane<Reverse<PowerOp>> = true;

template <class Op>
Handler OfIntegers(Lane lane, Form form) {
  return ForIntegers(lane, [form](auto type) { return Binary<Op, decltype(type)>(form); });
}
template <class Op>
Handler OfNumbers(Lane lane, Form form) {
  return ForNumbers(lane, [form](auto type) { return Binary<Op, decltype(type)>(form); });
}

Handler ArithmeticHandler(int code, Lane lane, Form form) {
  switch (static_cast<Arithmetic>(code)) {
    case Arithmetic::kAdd:
      return OfNumbers<AddOp>(lane, form);
    case Arithmetic::kSubtract:
      return OfNumbers<SubtractOp>(lane, form);
    case Arithmetic::kReverseSubtract:
      return OfNumbers<Reverse<SubtractOp>>(lane, form);
    case Arithmetic::kMultiply:
      return OfNumbers<MultiplyOp>(lane, form);
    case Arithmetic::kDivide:
      return BinaryOfFloats<DivideOp>(lane, form);
    case Arithmetic::kReverseDivide:
      return BinaryOfFloats<Reverse<DivideOp>>(lane, form);
    case Arithmetic::kFloorDivide:
      return OfNumbers<ByLane<ScalarFloorDivide>>(lane, form);
    case Arithmetic::kReverseFloorDivide:
      return OfNumbers<ByLane<ReverseScalar<ScalarFloorDivide>>>(lane, form);
    case Arithmetic::kRemainder:
      return OfNumbers<ByLane<ScalarRemainder>>(lane, form);
    case Arithmetic::kReverseRemainder:
      return OfNumbers<ByLane<ReverseScalar<ScalarRemainder>>>(lane, form);
    case Arithmetic::kPower:
      return OfNumbers<PowerOp>(lane, form);
    case Arithmetic::kReversePower:
      return OfNumbers<Reverse<PowerOp>>(lane, form);
    case Arithmetic::kMinimum:
      return OfNumbers<MinimumOp>(lane, form);
    case Arithmetic::kMaximum:
      return OfNumbers<MaximumOp>(lane, form);
    case Arithmetic::kAnd:
      return OfIntegers<AndOp>(lane, form);
    case Arithmetic::kOr:
      return OfIntegers<OrOp>(lane, form);
    case Arithmetic::kXor:
      return OfIntegers<XorOp>(lane, form);
    case Arithmetic::kLeftShift:
      return OfIntegers<ByLane<ScalarLeftShift>>(lane, form);
    case Arithmetic::kReverseLeftShift:
      return OfIntegers<ByLane<ReverseScalar<ScalarLeftShift>>>(lane, form);
    case Arithmetic::kRightShift:
      return OfIntegers<ByLane<ScalarRightShift>>(lane, form);
    case Arithmetic::kReverseRightShift:
      return OfIntegers<ByLane<ReverseScalar<ScalarRightShift>>>(lane, form);
    case Arithmetic::kCopysign:
      return BinaryOfFloats<CopysignOp>(lane, form);
    case Arithmetic::kReverseCopysign:
      return BinaryOfFloats<Reverse<CopysignOp>>(lane, form);
    case Arithmetic::kFmin:
      return OfNumbers<FminOp>(lane, form);
    case Arithmetic::kFmax:
      return OfNumbers<FmaxOp>(lane, form);
    case Arithmetic::kFmod:
      return BinaryOfFloats<ByLane<ScalarFmod>>(lane, form);
    case Arithmetic::kReverseFmod:
      return BinaryOfFloats<ByLane<ReverseScalar<ScalarFmod>>>(lane, form);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(ArithmeticHandler);
Handler FindArithmetic(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(ArithmeticHandler)(code, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
