// A choice by a comparison of two operands in memory, which leaves the registers to the values that
// it chooses from.
#include "server/kernels/choice.h"
#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/choice.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

// All are false of a NaN.
#define PENSTOCK_CONDITION(Name, FUNCTION)   \
  struct Name {                              \
    template <class V>                       \
    static HWY_INLINE auto Apply(V a, V b) { \
      return hn::FUNCTION(a, b);             \
    }                                        \
  };
PENSTOCK_CONDITION(IsEqual, Eq)
PENSTOCK_CONDITION(IsLess, Lt)
PENSTOCK_CONDITION(IsLessEqual, Le)
PENSTOCK_CONDITION(IsGreater, Gt)
PENSTOCK_CONDITION(IsGreaterEqual, Ge)
#undef PENSTOCK_CONDITION

// accumulator = Condition(first, second) ? accumulator : third, or, if kReversed, the other way
// round. The first operand moves; it and the third are the instruction's, the second is that of the
// instruction behind it.
template <class F, class Condition, typename T, bool kReversed, bool kStored>
void ChoiceCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  constexpr size_t kLanes = kLanesOf<decltype(d)>;
  const T* p = Operand<const T>(ip);
  const BoundInstruction* const values = ip++;
#define PENSTOCK_CHOOSE(k, FIRST, SECOND, THIRD)                      \
  {                                                                   \
    const auto first = FIRST;                                         \
    const auto chosen = Condition::Apply(first, SECOND);              \
    const auto value = Shrink(d, v##k);                               \
    v##k = Grow(d, kReversed ? hn::IfThenElse(chosen, THIRD, value)   \
                             : hn::IfThenElse(chosen, value, THIRD)); \
  }
#define PENSTOCK_FIRST(k) hn::LoadU(d, p + k * kLanes)
#define PENSTOCK_SECOND(k) hn::LoadU(d, q + k * kLanes)
#define PENSTOCK_THIRD(k) hn::LoadU(d, r + k * kLanes)
  if (ip->vector_step == 0) {
    const auto second = hn::LoadU(d, Broadcast<T>(ip));
    if (values->vector_step2 == 0) {
      const auto third = hn::LoadU(d, Broadcast2<T>(values));
#define PENSTOCK_CHOICE(k) PENSTOCK_CHOOSE(k, PENSTOCK_FIRST(k), second, third)
      PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHOICE)
#undef PENSTOCK_CHOICE
      PENSTOCK_END(F, T, kStored);
    }
    const T* r = Operand2<const T>(values);
    // where(x > 0, x, …) reads x once.
    if (r == p) {
#define PENSTOCK_CHOICE(k) PENSTOCK_CHOOSE(k, PENSTOCK_FIRST(k), second, first)
      PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHOICE)
#undef PENSTOCK_CHOICE
      PENSTOCK_END(F, T, kStored);
    }
#define PENSTOCK_CHOICE(k) PENSTOCK_CHOOSE(k, PENSTOCK_FIRST(k), second, PENSTOCK_THIRD(k))
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHOICE)
#undef PENSTOCK_CHOICE
    PENSTOCK_END(F, T, kStored);
  }
  const T* HWY_RESTRICT q = Operand<const T>(ip);
  if (values->vector_step2 == 0) {
    const auto third = hn::LoadU(d, Broadcast2<T>(values));
#define PENSTOCK_CHOICE(k) PENSTOCK_CHOOSE(k, PENSTOCK_FIRST(k), PENSTOCK_SECOND(k), third)
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHOICE)
#undef PENSTOCK_CHOICE
    PENSTOCK_END(F, T, kStored);
  }
  const T* HWY_RESTRICT r = Operand2<const T>(values);
#define PENSTOCK_CHOICE(k) \
  PENSTOCK_CHOOSE(k, PENSTOCK_FIRST(k), PENSTOCK_SECOND(k), PENSTOCK_THIRD(k))
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_CHOICE)
#undef PENSTOCK_CHOICE
#undef PENSTOCK_FIRST
#undef PENSTOCK_SECOND
#undef PENSTOCK_THIRD
#undef PENSTOCK_CHOOSE
  PENSTOCK_END(F, T, kStored);
}

// Of float32 in programs without 64-bit types: other choices go by flags.
template <class Condition, bool kReversed>
Handler ChoiceIn(Form form) {
  switch (form.span) {
    case Span::kOne:
      return PENSTOCK_HANDLER(ChoiceCode<OneLane, Condition, float, kReversed, false>);
    case Span::kShort:
      return PENSTOCK_HANDLER(ChoiceCode<Short32, Condition, float, kReversed, false>);
    case Span::kPair:
      if (form.stored)
        return PENSTOCK_HANDLER(ChoiceCode<Pair32, Condition, float, kReversed, true>);
      return PENSTOCK_HANDLER(ChoiceCode<Pair32, Condition, float, kReversed, false>);
    case Span::kWide:
      if (form.stored)
        return PENSTOCK_HANDLER(ChoiceCode<Wide32, Condition, float, kReversed, true>);
      return PENSTOCK_HANDLER(ChoiceCode<Wide32, Condition, float, kReversed, false>);
  }
  return nullptr;
}

template <class Condition>
Handler ChoiceBy(bool reversed, Form form) {
  return reversed ? ChoiceIn<Condition, true>(form) : ChoiceIn<Condition, false>(form);
}

Handler ChoiceHandler(Comparison comparison, bool reversed, Lane lane, Form form) {
  if (lane != Lane::kFloat32 || form.has_64bit || form.aside) return nullptr;
  switch (comparison) {
    case Comparison::kEqual:
      return ChoiceBy<IsEqual>(reversed, form);
    case Comparison::kNotEqual:
      return ChoiceBy<IsEqual>(!reversed, form);
    case Comparison::kLess:
      return ChoiceBy<IsLess>(reversed, form);
    case Comparison::kLessEqual:
      return ChoiceBy<IsLessEqual>(reversed, form);
    case Comparison::kGreater:
      return ChoiceBy<IsGreater>(reversed, form);
    case Comparison::kGreaterEqual:
      return ChoiceBy<IsGreaterEqual>(reversed, form);
    default:
      return nullptr;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
HWY_EXPORT(ChoiceHandler);
Handler FindChoice(Comparison comparison, bool reversed, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(ChoiceHandler)(comparison, reversed, lane, form);
}
}  // namespace penstock::kernels
#endif  // HWY_ONCE
