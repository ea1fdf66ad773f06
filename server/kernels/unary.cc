// Operations of one argument that are one or two instructions.
#include "server/kernels/arithmetic.h"
#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/unary.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

struct NegativeOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Neg(v);
    } else {
      return hn::Sub(hn::Zero(d), v);
    }
  }
};
struct ScalarAbsolute {
  template <typename T>
  static T Apply(T v) {
    using U = std::make_unsigned_t<T>;
    return v < 0 ? static_cast<T>(U(0) - static_cast<U>(v)) : v;
  }
};
struct AbsoluteOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Abs(v);
    } else {
      return ByLane<ScalarAbsolute>::Apply(d, v);
    }
  }
};
struct ScalarSign {
  template <typename T>
  static T Apply(T v) {
    return static_cast<T>((v > 0) - (v < 0));
  }
};
struct SignOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    using T = hn::TFromD<D>;
    if constexpr (hwy::IsFloat<T>()) {
      const V zero = hn::Zero(d);
      const V one = hn::Set(d, T(1));
      const V sign = hn::Or(hn::IfThenElseZero(hn::Gt(v, zero), one),
                            hn::IfThenElseZero(hn::Lt(v, zero), hn::Neg(one)));
      return hn::IfThenElse(hn::IsNaN(v), v, sign);
    } else {
      return ByLane<ScalarSign>::Apply(d, v);
    }
  }
};
struct InvertOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Not(v);
  }
};
struct SqrtOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Sqrt(v);
  }
};
// Highway's emulations for doubles lose the sign of a zero on none of the sets compiled here: all
// have roundpd.
struct FloorOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Floor(v);
  }
};
struct CeilOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Ceil(v);
  }
};
struct RintOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Round(v);
  }
};
struct TruncOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Trunc(v);
  }
};

struct ScalarSquare {
  template <typename T>
  static T Apply(T v) {
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(v) * static_cast<U>(v));
  }
};
struct SquareOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      return hn::Mul(v, v);
    } else {
      return ByLane<ScalarSquare>::Apply(d, v);
    }
  }
};
struct ReciprocalOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    return hn::Div(hn::Set(d, hn::TFromD<D>(1)), v);
  }
};

template <class Op>
Handler OfIntegers(Lane lane, Form form) {
  return ForIntegers(lane, [form](auto type) { return Unary<Op, decltype(type)>(form); });
}
template <class Op>
Handler OfNumbers(Lane lane, Form form) {
  return ForNumbers(lane, [form](auto type) { return Unary<Op, decltype(type)>(form); });
}

Handler UnaryHandler(int code, Lane lane, Form form) {
  switch (static_cast<Simple>(code)) {
    case Simple::kNegative:
      return OfNumbers<NegativeOp>(lane, form);
    case Simple::kAbsolute:
      return OfNumbers<AbsoluteOp>(lane, form);
    case Simple::kSign:
      return OfNumbers<SignOp>(lane, form);
    case Simple::kInvert:
      return OfIntegers<InvertOp>(lane, form);
    case Simple::kSqrt:
      return UnaryOfFloats<SqrtOp>(lane, form);
    case Simple::kFloor:
      return UnaryOfFloats<FloorOp>(lane, form);
    case Simple::kCeil:
      return UnaryOfFloats<CeilOp>(lane, form);
    case Simple::kRint:
      return UnaryOfFloats<RintOp>(lane, form);
    case Simple::kTrunc:
      return UnaryOfFloats<TruncOp>(lane, form);
    case Simple::kSquare:
      return OfNumbers<SquareOp>(lane, form);
    case Simple::kReciprocal:
      return UnaryOfFloats<ReciprocalOp>(lane, form);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(UnaryHandler);
Handler FindUnary(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(UnaryHandler)(code, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
