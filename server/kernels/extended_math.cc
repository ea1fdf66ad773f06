#include "server/kernels/extended_math.h"

#include <cmath>

#include "server/kernels/targets.h"
#include "server/kernels/x87.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/extended_math.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"
#include "server/kernels/sine-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

#define PENSTOCK_EXTENDED(Name, EXPRESSION)   \
  struct Name {                               \
    template <typename T>                     \
    static T Apply(T value) {                 \
      const long double x = value;            \
      return static_cast<T>(X87(EXPRESSION)); \
    }                                         \
  };
PENSTOCK_EXTENDED(Tan, std::tan(x))
PENSTOCK_EXTENDED(Arcsin, std::asin(x))
PENSTOCK_EXTENDED(Arccos, std::acos(x))
PENSTOCK_EXTENDED(Arctan, std::atan(x))
PENSTOCK_EXTENDED(Sinh, std::sinh(x))
PENSTOCK_EXTENDED(Cosh, std::cosh(x))
PENSTOCK_EXTENDED(Arcsinh, std::asinh(x))
PENSTOCK_EXTENDED(Arccosh, std::acosh(x))
PENSTOCK_EXTENDED(Arctanh, std::atanh(x))
PENSTOCK_EXTENDED(Exp2, std::exp2(x))
PENSTOCK_EXTENDED(Expm1, std::expm1(x))
PENSTOCK_EXTENDED(Log2, std::log2(x))
PENSTOCK_EXTENDED(Log10, std::log10(x))
PENSTOCK_EXTENDED(Cbrt, std::cbrt(x))
#undef PENSTOCK_EXTENDED

struct Arctan2 {
  template <typename T>
  static T Apply(T y, T x) {
    return static_cast<T>(
        X87(std::atan2(static_cast<long double>(y), static_cast<long double>(x))));
  }
};
struct ReverseArctan2 {
  template <typename T>
  static T Apply(T x, T y) {
    return Arctan2::Apply(y, x);
  }
};
struct Hypot {
  template <typename T>
  static T Apply(T x, T y) {
    return static_cast<T>(
        X87(std::hypot(static_cast<long double>(x), static_cast<long double>(y))));
  }
};
// log(exp(x) + exp(y)): of two infinities of one sign that infinity.
struct Logaddexp {
  template <typename T>
  static T Apply(T x, T y) {
    if (x == y) return static_cast<T>(X87(x) + std::log(2.0L));
    const auto difference = static_cast<long double>(X87(x) - X87(y));
    if (difference > 0) return static_cast<T>(X87(x) + std::log1p(std::exp(-difference)));
    if (difference <= 0) return static_cast<T>(X87(y) + std::log1p(std::exp(difference)));
    return x + y;
  }
};

// These two are common enough for a way of their own.
template <int kQuarters>
Handler OfAngle(Lane lane, Form form) {
  if (lane == Lane::kFloat32) return Unary<SineOp<kQuarters>, float>(form);
  if (lane == Lane::kFloat64) return Unary<DoubleSineOp<kQuarters>, double>(form);
  return nullptr;
}

Handler ExtendedHandler(int code, Lane lane, Form form) {
  switch (static_cast<Extended>(code)) {
    case Extended::kSin:
      return OfAngle<0>(lane, form);
    case Extended::kCos:
      return OfAngle<1>(lane, form);
    case Extended::kTan:
      return UnaryOfFloats<ByLane<Tan>>(lane, form);
    case Extended::kArcsin:
      return UnaryOfFloats<ByLane<Arcsin>>(lane, form);
    case Extended::kArccos:
      return UnaryOfFloats<ByLane<Arccos>>(lane, form);
    case Extended::kArctan:
      return UnaryOfFloats<ByLane<Arctan>>(lane, form);
    case Extended::kSinh:
      return UnaryOfFloats<ByLane<Sinh>>(lane, form);
    case Extended::kCosh:
      return UnaryOfFloats<ByLane<Cosh>>(lane, form);
    case Extended::kArcsinh:
      return UnaryOfFloats<ByLane<Arcsinh>>(lane, form);
    case Extended::kArccosh:
      return UnaryOfFloats<ByLane<Arccosh>>(lane, form);
    case Extended::kArctanh:
      return UnaryOfFloats<ByLane<Arctanh>>(lane, form);
    case Extended::kExp2:
      return UnaryOfFloats<ByLane<Exp2>>(lane, form);
    case Extended::kExpm1:
      return UnaryOfFloats<ByLane<Expm1>>(lane, form);
    case Extended::kLog2:
      return UnaryOfFloats<ByLane<Log2>>(lane, form);
    case Extended::kLog10:
      return UnaryOfFloats<ByLane<Log10>>(lane, form);
    case Extended::kCbrt:
      return UnaryOfFloats<ByLane<Cbrt>>(lane, form);
  }
  return nullptr;
}

Handler ExtendedPairHandler(int code, Lane lane, Form form) {
  switch (static_cast<ExtendedPair>(code)) {
    case ExtendedPair::kArctan2:
      return BinaryOfFloats<ByLane<Arctan2>>(lane, form);
    case ExtendedPair::kReverseArctan2:
      return BinaryOfFloats<ByLane<ReverseArctan2>>(lane, form);
    case ExtendedPair::kHypot:
      return BinaryOfFloats<ByLane<Hypot>>(lane, form);
    case ExtendedPair::kLogaddexp:
      return BinaryOfFloats<ByLane<Logaddexp>>(lane, form);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(ExtendedHandler);
HWY_EXPORT(ExtendedPairHandler);
Handler FindExtended(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(ExtendedHandler)(code, lane, form);
}
Handler FindExtendedPair(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(ExtendedPairHandler)(code, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
