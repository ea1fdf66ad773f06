#include "server/kernels/chain.h"

#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/chain.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

#define PENSTOCK_LINK(NAME, RESULT)       \
  struct NAME {                           \
    template <class V>                    \
    static HWY_INLINE V Apply(V a, V b) { \
      return RESULT;                      \
    }                                     \
  };
PENSTOCK_LINK(Sum, hn::Add(a, b))
PENSTOCK_LINK(Difference, hn::Sub(a, b))
PENSTOCK_LINK(ReverseDifference, hn::Sub(b, a))
PENSTOCK_LINK(Product, hn::Mul(a, b))
PENSTOCK_LINK(Quotient, hn::Div(a, b))
PENSTOCK_LINK(ReverseQuotient, hn::Div(b, a))
#undef PENSTOCK_LINK

template <class F, class First, class Second, typename From, bool kPushes, bool kStored>
void ChainBehind(PENSTOCK_CODE_PARAMETERS) {
  if constexpr (kPushes) {
    PENSTOCK_EACH_PAIR(F, PENSTOCK_PUSH)
  }
  const typename F::template D<float> d;
  constexpr size_t kLanes = kLanesOf<decltype(d)>;
  const From* HWY_RESTRICT p = Operand<const From>(ip);
#define PENSTOCK_CHAIN(k, SECOND, LAST) \
  v##k = Grow(d, Second::Apply(First::Apply(LoadAs<From>(d, p + k * kLanes), SECOND), LAST));
  if (ip[2].vector_step != 0) {
    const float* HWY_RESTRICT q = Operand<const float>(ip + 1);
    const float* HWY_RESTRICT r = Operand<const float>(ip + 2);
#define PENSTOCK_CHAIN_ALL(k) \
  PENSTOCK_CHAIN(k, hn::LoadU(d, q + k * kLanes), hn::LoadU(d, r + k * kLanes))
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN_ALL)
#undef PENSTOCK_CHAIN_ALL
    ip += 2;
    PENSTOCK_END(F, float, kStored)
  }
  const auto last = hn::LoadU(d, Broadcast<float>(ip + 2));
  if (ip[1].vector_step == 0) {
    const auto operand = hn::LoadU(d, Broadcast<float>(ip + 1));
#define PENSTOCK_CHAIN_ALL(k) PENSTOCK_CHAIN(k, operand, last)
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN_ALL)
#undef PENSTOCK_CHAIN_ALL
  } else {
    const float* HWY_RESTRICT q = Operand<const float>(ip + 1);
#define PENSTOCK_CHAIN_ALL(k) PENSTOCK_CHAIN(k, hn::LoadU(d, q + k * kLanes), last)
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN_ALL)
#undef PENSTOCK_CHAIN_ALL
  }
#undef PENSTOCK_CHAIN
  ip += 2;
  PENSTOCK_END(F, float, kStored)
}

template <class F, class First, class Second, typename From, bool kStored>
void ChainOnto(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<float> d;
  constexpr size_t kLanes = kLanesOf<decltype(d)>;
  const From* HWY_RESTRICT p = Operand<const From>(ip);
  const auto operand = hn::LoadU(d, Broadcast<float>(ip + 1));
#define PENSTOCK_CHAIN(k) \
  v##k = Grow(            \
      d, Second::Apply(First::Apply(LoadAs<From>(d, p + k * kLanes), operand), Shrink(d, v##k)));
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN)
#undef PENSTOCK_CHAIN
  ip += 2;
  PENSTOCK_END(F, float, kStored)
}

template <class First, class Second, class Third, bool kStored>
void LongChain(PENSTOCK_CODE_PARAMETERS) {
  using F = Wide32;
  const typename F::template D<float> d;
  constexpr size_t kLanes = kLanesOf<decltype(d)>;
  const float* HWY_RESTRICT p = Operand<const float>(ip);
  const auto last = hn::LoadU(d, Broadcast<float>(ip + 2));
#define PENSTOCK_CHAIN(k, COLUMN, SECOND) \
  v##k = Grow(d, Third::Apply(Second::Apply(First::Apply(COLUMN, SECOND), last), Shrink(d, v##k)));
  if (ip[1].vector_step == 0) {
    const auto operand = hn::LoadU(d, Broadcast<float>(ip + 1));
#define PENSTOCK_CHAIN_ALL(k) PENSTOCK_CHAIN(k, hn::LoadU(d, p + k * kLanes), operand)
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN_ALL)
#undef PENSTOCK_CHAIN_ALL
  } else if (const float* q = Operand<const float>(ip + 1); q == p) {
    // x * x reads x once.
#define PENSTOCK_CHAIN_ALL(k)                         \
  {                                                   \
    const auto column = hn::LoadU(d, p + k * kLanes); \
    PENSTOCK_CHAIN(k, column, column)                 \
  }
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN_ALL)
#undef PENSTOCK_CHAIN_ALL
  } else {
#define PENSTOCK_CHAIN_ALL(k) \
  PENSTOCK_CHAIN(k, hn::LoadU(d, p + k * kLanes), hn::LoadU(d, q + k * kLanes))
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHAIN_ALL)
#undef PENSTOCK_CHAIN_ALL
  }
#undef PENSTOCK_CHAIN
  ip += 3;
  PENSTOCK_END(F, float, kStored)
}

template <class First, class Second, typename From>
Handler ChainFrom(ChainKind kind, Form form) {
  const bool wide = form.span == Span::kWide;
#define PENSTOCK_CHAIN(...) return PENSTOCK_HANDLER(__VA_ARGS__)
  if (kind == ChainKind::kBehind) {
    if (form.pushes) {
      if (wide || form.stored) return nullptr;
      PENSTOCK_CHAIN(ChainBehind<Pair32, First, Second, From, true, false>);
    }
    // A store behind it in four vectors is for what another value waits for: there is none.
    if (!wide && form.stored) return nullptr;
    if (form.stored) PENSTOCK_CHAIN(ChainBehind<Wide32, First, Second, From, false, true>);
    if (wide) PENSTOCK_CHAIN(ChainBehind<Wide32, First, Second, From, false, false>);
    PENSTOCK_CHAIN(ChainBehind<Pair32, First, Second, From, false, false>);
  }
  if (form.stored) {
    if (wide) PENSTOCK_CHAIN(ChainOnto<Wide32, First, Second, From, true>);
    PENSTOCK_CHAIN(ChainOnto<Pair32, First, Second, From, true>);
  }
  if (wide) PENSTOCK_CHAIN(ChainOnto<Wide32, First, Second, From, false>);
  PENSTOCK_CHAIN(ChainOnto<Pair32, First, Second, From, false>);
#undef PENSTOCK_CHAIN
}

template <class First, class Second>
Handler ChainOf(ChainKind kind, Form form) {
  if (form.loaded == DType::kFloat32) return ChainFrom<First, Second, float>(kind, form);
  if (form.loaded == DType::kUint8) return ChainFrom<First, Second, uint8_t>(kind, form);
  return nullptr;
}

template <class First>
Handler ChainAfter(ChainKind kind, Arithmetic second, Form form) {
  switch (second) {
    case Arithmetic::kAdd:
      return ChainOf<First, Sum>(kind, form);
    case Arithmetic::kSubtract:
      return ChainOf<First, Difference>(kind, form);
    case Arithmetic::kReverseSubtract:
      return ChainOf<First, ReverseDifference>(kind, form);
    case Arithmetic::kMultiply:
      return ChainOf<First, Product>(kind, form);
    case Arithmetic::kDivide:
      return ChainOf<First, Quotient>(kind, form);
    case Arithmetic::kReverseDivide:
      return ChainOf<First, ReverseQuotient>(kind, form);
    default:
      return nullptr;
  }
}

Handler ChainHandler(ChainKind kind, Arithmetic first, Arithmetic second, Form form) {
  if (form.has_64bit || form.aside) return nullptr;
  if (form.span != Span::kWide && form.span != Span::kPair) return nullptr;
  switch (first) {
    case Arithmetic::kAdd:
      return ChainAfter<Sum>(kind, second, form);
    case Arithmetic::kSubtract:
      return ChainAfter<Difference>(kind, second, form);
    case Arithmetic::kReverseSubtract:
      return ChainAfter<ReverseDifference>(kind, second, form);
    case Arithmetic::kMultiply:
      return ChainAfter<Product>(kind, second, form);
    case Arithmetic::kDivide:
      return ChainAfter<Quotient>(kind, second, form);
    default:
      return nullptr;
  }
}

template <class First, class Second, class Third>
Handler LongChainOf(Form form) {
  if (form.stored) return PENSTOCK_HANDLER(LongChain<First, Second, Third, true>);
  return PENSTOCK_HANDLER(LongChain<First, Second, Third, false>);
}

template <class First, class Second>
Handler LongChainBefore(Arithmetic third, Form form) {
  switch (third) {
    case Arithmetic::kAdd:
      return LongChainOf<First, Second, Sum>(form);
    case Arithmetic::kSubtract:
      return LongChainOf<First, Second, Difference>(form);
    case Arithmetic::kReverseSubtract:
      return LongChainOf<First, Second, ReverseDifference>(form);
    case Arithmetic::kMultiply:
      return LongChainOf<First, Second, Product>(form);
    case Arithmetic::kDivide:
      return LongChainOf<First, Second, Quotient>(form);
    case Arithmetic::kReverseDivide:
      return LongChainOf<First, Second, ReverseQuotient>(form);
    default:
      return nullptr;
  }
}

template <class First>
Handler LongChainAfter(Arithmetic second, Arithmetic third, Form form) {
  switch (second) {
    case Arithmetic::kAdd:
      return LongChainBefore<First, Sum>(third, form);
    case Arithmetic::kSubtract:
      return LongChainBefore<First, Difference>(third, form);
    case Arithmetic::kMultiply:
      return LongChainBefore<First, Product>(third, form);
    default:
      return nullptr;
  }
}

Handler LongChainHandler(Arithmetic first, Arithmetic second, Arithmetic third, Form form) {
  if (form.has_64bit || form.aside || form.span != Span::kWide || form.loaded != DType::kFloat32) {
    return nullptr;
  }
  switch (first) {
    case Arithmetic::kAdd:
      return LongChainAfter<Sum>(second, third, form);
    case Arithmetic::kSubtract:
      return LongChainAfter<Difference>(second, third, form);
    case Arithmetic::kMultiply:
      return LongChainAfter<Product>(second, third, form);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(ChainHandler);
Handler FindChain(ChainKind kind, Arithmetic first, Arithmetic second, Form form) {
  return HWY_DYNAMIC_DISPATCH(ChainHandler)(kind, first, second, form);
}
HWY_EXPORT(LongChainHandler);
Handler FindLongChain(Arithmetic first, Arithmetic second, Arithmetic third, Form form) {
  return HWY_DYNAMIC_DISPATCH(LongChainHandler)(first, second, third, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
