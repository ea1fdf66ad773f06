// Comparisons, and the choice by their result.
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

template <class Op>
Handler Compare(Lane lane, Form form) {
  switch (lane) {
    case Lane::kInt32:
      return Binary<Op, int32_t, int32_t>(form);
    case Lane::kUint32:
      return Binary<Op, uint32_t, int32_t>(form);
    case Lane::kInt64:
      return Binary<Op, int64_t, int32_t>(form);
    case Lane::kUint64:
      return Binary<Op, uint64_t, int32_t>(form);
    case Lane::kFloat32:
      return Binary<Op, float, int32_t>(form);
    case Lane::kFloat64:
      return Binary<Op, double, int32_t>(form);
  }
  return nullptr;
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
  }
  return nullptr;
}

// minimum(maximum(x, low), high) with the rules of arithmetic.cc: the first stays where it is NaN or equal.
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
  return Ternary<SelectOp, T, int32_t>(form);
}

Handler SelectionHandler(int code, Lane lane, Form form) {
  switch (lane) {
    case Lane::kInt32:
      return SelectionOf<int32_t>(code, form);
    case Lane::kUint32:
      return SelectionOf<uint32_t>(code, form);
    case Lane::kInt64:
      return SelectionOf<int64_t>(code, form);
    case Lane::kUint64:
      return SelectionOf<uint64_t>(code, form);
    case Lane::kFloat32:
      return SelectionOf<float>(code, form);
    case Lane::kFloat64:
      return SelectionOf<double>(code, form);
  }
  return nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(ComparisonHandler);
HWY_EXPORT(SelectionHandler);
Handler FindComparison(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(ComparisonHandler)(code, lane, form);
}
Handler FindSelection(int code, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(SelectionHandler)(code, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
