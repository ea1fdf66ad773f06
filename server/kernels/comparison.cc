// Comparisons, tests of one number, and the choice by their result.
#include <limits>
#include <type_traits>

#include "server/kernels/arithmetic.h"
#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/comparison.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

// Unsigned values compare as signed ones once their highest bit is turned over.
template <class D, class V>
HWY_INLINE auto Ordered(D d, V v) {
  using T = hn::TFromD<D>;
  if constexpr (std::is_unsigned_v<T>) {
    const hn::RebindToSigned<D> ds;
    return hn::BitCast(ds, hn::Xor(v, hn::Set(d, T(1) << (8 * sizeof(T) - 1))));
  } else {
    return v;
  }
}

#define PENSTOCK_COMPARISON(Name, EXPRESSION)       \
  struct Name {                                     \
    template <class D, class V>                     \
    static HWY_INLINE auto Apply(D d, V a, V b) {   \
      const auto x = Ordered(d, a);                 \
      const auto y = Ordered(d, b);                 \
      const hn::DFromV<decltype(Ordered(d, a))> ds; \
      return FlagsFromMask(ds, EXPRESSION);         \
    }                                               \
  };
PENSTOCK_COMPARISON(EqualOp, hn::Eq(x, y))
// Highway's Ne is false for NaN on AVX and true on SSE.
PENSTOCK_COMPARISON(NotEqualOp, hn::Not(hn::Eq(x, y)))
PENSTOCK_COMPARISON(LessOp, hn::Lt(x, y))
PENSTOCK_COMPARISON(GreaterOp, hn::Gt(x, y))
#undef PENSTOCK_COMPARISON

// Integers have no Le in Highway; NaN must fail both, so it is no negation of Gt either.
struct LessEqualOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V a, V b) {
    const auto x = Ordered(d, a);
    const auto y = Ordered(d, b);
    const hn::DFromV<decltype(Ordered(d, a))> ds;
    return FlagsFromMask(ds, hn::Or(hn::Lt(x, y), hn::Eq(x, y)));
  }
};
struct GreaterEqualOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V a, V b) {
    return LessEqualOp::Apply(d, b, a);
  }
};

// Not zero; NaN is not.
template <class D, class V>
HWY_INLINE auto Truth(D d, V v) {
  return hn::Not(hn::Eq(v, hn::Zero(d)));
}
struct LogicalAndOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V a, V b) {
    return FlagsFromMask(d, hn::And(Truth(d, a), Truth(d, b)));
  }
};
struct LogicalOrOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V a, V b) {
    return FlagsFromMask(d, hn::Or(Truth(d, a), Truth(d, b)));
  }
};
struct LogicalXorOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V a, V b) {
    return FlagsFromMask(d, hn::Xor(Truth(d, a), Truth(d, b)));
  }
};

struct LogicalNotOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V v) {
    return FlagsFromMask(d, hn::Eq(v, hn::Zero(d)));
  }
};
// Of integers all three are constants.
struct IsNanOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V v) {
    return FlagsFromMask(d, hn::Not(hn::Eq(v, v)));
  }
};
struct IsInfOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      using T = hn::TFromD<D>;
      return FlagsFromMask(d, hn::Eq(hn::Abs(v), hn::Set(d, std::numeric_limits<T>::infinity())));
    } else {
      return IsNanOp::Apply(d, v);
    }
  }
};
struct IsFiniteOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V v) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      using T = hn::TFromD<D>;
      return FlagsFromMask(d, hn::Lt(hn::Abs(v), hn::Set(d, std::numeric_limits<T>::infinity())));
    } else {
      return FlagsFromMask(d, hn::Eq(v, v));
    }
  }
};
struct SignbitOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V v) {
    const hn::RebindToSigned<D> ds;
    if constexpr (std::is_unsigned_v<hn::TFromD<D>>) {
      return FlagsFromMask(ds, hn::Lt(hn::Zero(ds), hn::Zero(ds)));
    } else {
      return FlagsFromMask(ds, hn::Lt(hn::BitCast(ds, v), hn::Zero(ds)));
    }
  }
};

struct SelectOp {
  template <class D, class V, class C>
  static HWY_INLINE V Apply(D d, V a, C condition, V b) {
    using T = hn::TFromD<D>;
    const hn::RebindToSigned<D> di;
    if constexpr (sizeof(T) == 4) {
      return hn::IfThenElse(hn::RebindMask(d, hn::Ne(condition, hn::Zero(di))), a, b);
    } else {
      const auto wide = hn::PromoteTo(di, condition);
      return hn::IfThenElse(hn::RebindMask(d, hn::Ne(wide, hn::Zero(di))), a, b);
    }
  }
};

struct ReverseSelectOp {
  template <class D, class V, class C>
  static HWY_INLINE V Apply(D d, V a, C condition, V b) {
    return SelectOp::Apply(d, b, condition, a);
  }
};

template <class Op>
Handler Compare(Lane lane, Form form) {
  return ForNumbers(lane, [form](auto type) { return Binary<Op, decltype(type), int32_t>(form); });
}

Handler ComparisonHandler(int code, Lane lane, Form form) {
  switch (static_cast<Comparison>(code)) {
    case Comparison::kEqual:
      return Compare<EqualOp>(lane, form);
    case Comparison::kNotEqual:
      return Compare<NotEqualOp>(lane, form);
    case Comparison::kLess:
      return Compare<LessOp>(lane, form);
    case Comparison::kLessEqual:
      return Compare<LessEqualOp>(lane, form);
    case Comparison::kGreater:
      return Compare<GreaterOp>(lane, form);
    case Comparison::kGreaterEqual:
      return Compare<GreaterEqualOp>(lane, form);
    case Comparison::kLogicalAnd:
      return Compare<LogicalAndOp>(lane, form);
    case Comparison::kLogicalOr:
      return Compare<LogicalOrOp>(lane, form);
    case Comparison::kLogicalXor:
      return Compare<LogicalXorOp>(lane, form);
  }
  return nullptr;
}

template <class Op>
Handler TestOf(Lane lane, Form form) {
  return ForNumbers(lane, [form](auto type) { return Unary<Op, decltype(type), int32_t>(form); });
}

Handler TestHandler(int code, Lane lane, Form form) {
  switch (static_cast<Test>(code)) {
    case Test::kIsNan:
      return TestOf<IsNanOp>(lane, form);
    case Test::kIsInf:
      return TestOf<IsInfOp>(lane, form);
    case Test::kIsFinite:
      return TestOf<IsFiniteOp>(lane, form);
    case Test::kSignbit:
      return TestOf<SignbitOp>(lane, form);
    case Test::kLogicalNot:
      return TestOf<LogicalNotOp>(lane, form);
  }
  return nullptr;
}

// minimum(maximum(x, low), high) with the rules of arithmetic.cc: the first stays where it is NaN
// or equal.
struct ClipOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V x, V low, V high) {
    if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
      const V raised = hn::IfThenElse(hn::Or(hn::Ge(x, low), hn::IsNaN(x)), x, low);
      return hn::IfThenElse(hn::Or(hn::Le(raised, high), hn::IsNaN(raised)), raised, high);
    } else {
      const auto below = hn::Lt(Ordered(d, x), Ordered(d, low));
      const V raised = hn::IfThenElse(hn::RebindMask(d, below), low, x);
      const auto above = hn::Lt(Ordered(d, high), Ordered(d, raised));
      return hn::IfThenElse(hn::RebindMask(d, above), high, raised);
    }
  }
};

template <typename T>
Handler SelectionOf(int code, Form form) {
  if (static_cast<Selection>(code) == Selection::kClip) return Ternary<ClipOp, T, T>(form);
  if (static_cast<Selection>(code) == Selection::kReverseSelect) {
    return Ternary<ReverseSelectOp, T, int32_t>(form);
  }
  return Ternary<SelectOp, T, int32_t>(form);
}

Handler SelectionHandler(int code, Lane lane, Form form) {
  return ForNumbers(lane, [=](auto type) { return SelectionOf<decltype(type)>(code, form); });
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(ComparisonHandler);
HWY_EXPORT(SelectionHandler);
HWY_EXPORT(TestHandler);
Handler FindTest(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(TestHandler)(code, lane, form);
}
Handler FindComparison(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(ComparisonHandler)(code, lane, form);
}
Handler FindSelection(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(SelectionHandler)(code, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
