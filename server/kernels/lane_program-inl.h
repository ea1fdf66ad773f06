// How one instruction of a lane program is written: included once for each instruction set, inside
// no namespace.
//
// An operation is a struct with a static `Apply(d, a, …)` on vectors of the tag `d`. The templates
// here turn it into code for each form. The one-lane form is the same template on vectors of one
// element: the scalar twin.
#if defined(PENSTOCK_LANE_PROGRAM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PENSTOCK_LANE_PROGRAM_INL_H_
#undef PENSTOCK_LANE_PROGRAM_INL_H_
#else
#define PENSTOCK_LANE_PROGRAM_INL_H_
#endif

#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "server/kernels/lane_program.h"
#include "server/kernels/saturate.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The accumulator's vectors as they are passed, whatever type they hold.
using Bytes = hn::Vec<hn::ScalableTag<uint8_t>>;
using Code = void (*)(const BoundInstruction*, LaneState*, Bytes, Bytes, Bytes, Bytes, Bytes, Bytes,
                      Bytes, Bytes);

template <bool kHas64, int kNumVectors, bool kScalar>
struct FormTag {
  static constexpr int kVectors = kNumVectors;
  static constexpr bool k64 = kHas64;
  template <typename T>
  using D = std::conditional_t<
      kScalar, hn::CappedTag<T, 1>,
      std::conditional_t<kHas64, hn::Rebind<T, hn::ScalableTag<double>>, hn::ScalableTag<T>>>;
};
using Wide32 = FormTag<false, 8, false>;
using Wide64 = FormTag<true, 8, false>;
using Pair32 = FormTag<false, 4, false>;
using Pair64 = FormTag<true, 4, false>;
using Short32 = FormTag<false, 2, false>;
using Short64 = FormTag<true, 2, false>;
using OneLane = FormTag<true, 1, true>;

template <class D>
inline constexpr size_t kLanesOf = hn::MaxLanes(D());
template <class D>
constexpr size_t TagBytes() {
  return kLanesOf<D> * sizeof(hn::TFromD<D>);
}

// The accumulator's low part as a vector of D.
template <class D, class V>
HWY_INLINE hn::Vec<D> Shrink(D d, V v) {
  using From = hn::DFromV<V>;
  if constexpr (TagBytes<From>() == TagBytes<D>()) {
    return hn::BitCast(d, v);
  } else {
    const hn::Half<From> half;
    return Shrink(d, hn::LowerHalf(half, v));
  }
}

// The opposite; what lies above is of no interest.
template <class D, class V>
HWY_INLINE Bytes Grow(D, V v) {
  const hn::Repartition<uint8_t, D> bytes;
  if constexpr (TagBytes<D>() == TagBytes<hn::ScalableTag<uint8_t>>()) {
    return hn::BitCast(bytes, v);
#if HWY_TARGET <= HWY_AVX3
  } else if constexpr (TagBytes<D>() == 32) {
    return Bytes{_mm512_castsi256_si512(hn::BitCast(bytes, v).raw)};
#endif
  } else {
    const hn::Twice<hn::Repartition<uint8_t, D>> twice;
    return Grow(twice, hn::ZeroExtendVector(twice, hn::BitCast(bytes, v)));
  }
}

template <typename T>
HWY_INLINE T* Operand(const BoundInstruction* ip) {
  return reinterpret_cast<T*>(ip->base) + *ip->cursor;
}
template <typename T>
HWY_INLINE T* Operand2(const BoundInstruction* ip) {
  return reinterpret_cast<T*>(ip->base2) + *ip->cursor2;
}
// Of an operand that is the same vector for all, which has no cursor.
template <typename T>
HWY_INLINE const T* Broadcast(const BoundInstruction* ip) {
  return reinterpret_cast<const T*>(ip->base);
}
template <typename T>
HWY_INLINE const T* Broadcast2(const BoundInstruction* ip) {
  return reinterpret_cast<const T*>(ip->base2);
}

// One vector of `To` from memory of type `From`.
template <typename From, class D>
HWY_INLINE hn::Vec<D> LoadAs(D d, const From* HWY_RESTRICT p) {
  using To = hn::TFromD<D>;
  const hn::Rebind<From, D> from;
  if constexpr (std::is_same_v<From, To>) {
    return hn::LoadU(d, p);
  } else if constexpr (sizeof(From) < 4 && std::is_same_v<To, int32_t>) {
    return hn::PromoteTo(d, hn::LoadU(from, p));
  } else if constexpr (sizeof(From) < 4 && std::is_same_v<To, float>) {
    const hn::Rebind<int32_t, D> di;
    return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(from, p)));
  } else {
    // Columns may lie at any address.
    HWY_ALIGN From in[kLanesOf<D>];
    HWY_ALIGN To values[kLanesOf<D>];
    hwy::CopyBytes<sizeof(in)>(p, in);
    for (size_t i = 0; i < kLanesOf<D>; ++i) values[i] = SaturateCast<To>(in[i]);
    return hn::Load(d, values);
  }
}

template <class D, class V>
HWY_INLINE V CanonicalNan(D d, V v) {
  using T = hn::TFromD<D>;
#if HWY_TARGET <= HWY_AVX3
  // One instruction: what is a quiet (0) or signalling (1) NaN becomes the indefinite one (3), all
  // else stays (0).
  constexpr int kNans = 0x33;
  if constexpr (TagBytes<D>() == 64) {
    const auto table = _mm512_set1_epi64(sizeof(T) == 8 ? kNans : kNans | int64_t{kNans} << 32);
    if constexpr (sizeof(T) == 8) {
      return V{_mm512_fixupimm_pd(v.raw, v.raw, table, 0)};
    } else {
      return V{_mm512_fixupimm_ps(v.raw, v.raw, table, 0)};
    }
  }
#endif
  return hn::IfThenElse(hn::IsNaN(v), hn::Set(d, -std::numeric_limits<T>::quiet_NaN()), v);
}

// Does STATEMENT(k) for each vector k that the form has.
#define PENSTOCK_EACH_VECTOR(F, STATEMENT) \
  STATEMENT(0)                             \
  if constexpr (F::kVectors > 1) {         \
    STATEMENT(1)                           \
  }                                        \
  if constexpr (F::kVectors > 2) {         \
    STATEMENT(2)                           \
    STATEMENT(3)                           \
  }                                        \
  if constexpr (F::kVectors > 4) {         \
    STATEMENT(4)                           \
    STATEMENT(5)                           \
    STATEMENT(6)                           \
    STATEMENT(7)                           \
  }
// Does STATEMENT(k, aside) for each vector k and its partner aside.
#define PENSTOCK_EACH_PAIR(F, STATEMENT) \
  STATEMENT(0, 4)                        \
  if constexpr (F::kVectors > 1) {       \
    STATEMENT(1, 5)                      \
  }                                      \
  if constexpr (F::kVectors > 2) {       \
    STATEMENT(2, 6)                      \
    STATEMENT(3, 7)                      \
  }
#define PENSTOCK_CODE_PARAMETERS                                                              \
  const BoundInstruction *ip, LaneState *s, Bytes v0, Bytes v1, Bytes v2, Bytes v3, Bytes v4, \
      Bytes v5, Bytes v6, Bytes v7
// A sibling call: the vectors stay where they are, and the stack does not grow.
#define PENSTOCK_NEXT_BUT(n) \
  return reinterpret_cast<Code>(ip[n].run)(ip + n, s, v0, v1, v2, v3, v4, v5, v6, v7)
#define PENSTOCK_NEXT() PENSTOCK_NEXT_BUT(1)
// Puts vector k aside.
#define PENSTOCK_PUSH(k, aside) v##aside = v##k;

// accumulator = Op(accumulator); `To` is the result's type where it differs.
template <class F, class Op, typename T, typename To = T>
void UnaryCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  const typename F::template D<To> to;
#define PENSTOCK_UNARY(k) v##k = Grow(to, Op::Apply(d, Shrink(d, v##k)));
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_UNARY)
#undef PENSTOCK_UNARY
  PENSTOCK_NEXT();
}

// Whether results of a form and a type may go past the caches, which stores of whole vectors alone
// can.
template <class F, typename T>
inline constexpr bool kMayGoPastCaches = F::kVectors == 8 && !F::k64 && std::is_same_v<T, float>;

// Where the accumulator goes as the result of the step: memory of type `T` at the instruction's
// operand. Every NaN becomes the same.
#define PENSTOCK_STORE_RESULT(F, T, instruction)                       \
  {                                                                    \
    const typename F::template D<T> result;                            \
    constexpr size_t kStep = kLanesOf<decltype(result)>;               \
    T* HWY_RESTRICT out = Operand<T>(instruction);                     \
    if (kMayGoPastCaches<F, T> && s->past_caches &&                    \
        reinterpret_cast<uintptr_t>(out) % (kStep * sizeof(T)) == 0) { \
      PENSTOCK_EACH_VECTOR(F, PENSTOCK_STREAM_VECTOR)                  \
    } else {                                                           \
      PENSTOCK_EACH_VECTOR(F, PENSTOCK_STORE_VECTOR)                   \
    }                                                                  \
  }
#define PENSTOCK_STORE_VECTOR(k) \
  hn::StoreU(CanonicalNan(result, Shrink(result, v##k)), result, out + k * kStep);
#define PENSTOCK_STREAM_VECTOR(k) \
  hn::Stream(CanonicalNan(result, Shrink(result, v##k)), result, out + k * kStep);
// The end of a step whose store was n - 1 instructions ahead: what Finish() does, without another
// jump, where no constant has a cursor of its own.
#define PENSTOCK_END_STEP(n)                      \
  {                                               \
    if (s->num_cursors > 2) PENSTOCK_NEXT_BUT(n); \
    s->cursor[1] += s->step_elements;             \
    if (--s->steps_left == 0) return;             \
    ip = s->first;                                \
    PENSTOCK_NEXT_BUT(0);                         \
  }
// The end of an instruction that may do the work of the store behind it.
#define PENSTOCK_END(F, T, kStored)     \
  if constexpr (kStored) {              \
    PENSTOCK_STORE_RESULT(F, T, ip + 1) \
    PENSTOCK_END_STEP(2)                \
  } else {                              \
    PENSTOCK_NEXT();                    \
  }

// accumulator = Op(accumulator, memory); or result = the same, and the end of the step.
template <class F, class Op, typename T, typename To = T, bool kStored = false>
void BinaryCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  const typename F::template D<To> to;
  // A broadcast operand is loaded once; any other lies at constant distances, which addresses take
  // for nothing.
  if (ip->vector_step == 0) {
    const auto b = hn::LoadU(d, Broadcast<T>(ip));
#define PENSTOCK_BINARY(k) v##k = Grow(to, Op::Apply(d, Shrink(d, v##k), b));
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_BINARY)
#undef PENSTOCK_BINARY
    PENSTOCK_END(F, To, kStored);
  }
  const T* HWY_RESTRICT p = Operand<const T>(ip);
#define PENSTOCK_BINARY(k) \
  v##k = Grow(to, Op::Apply(d, Shrink(d, v##k), hn::LoadU(d, p + k * kLanesOf<decltype(d)>)));
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_BINARY)
#undef PENSTOCK_BINARY
  PENSTOCK_END(F, To, kStored);
}

// accumulator = Op(accumulator, aside); or result = the same, and the end of the step.
template <class F, class Op, typename T, typename To = T, bool kStored = false>
void BinaryAsideCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  const typename F::template D<To> to;
#define PENSTOCK_BINARY(k, aside) \
  v##k = Grow(to, Op::Apply(d, Shrink(d, v##k), Shrink(d, v##aside)));
  PENSTOCK_EACH_PAIR(F, PENSTOCK_BINARY)
#undef PENSTOCK_BINARY
  PENSTOCK_END(F, To, kStored);
}

// accumulator = Op(memory of type `From`, memory): the work of two instructions, or, with the store
// of the result, of three.
template <class F, class Op, typename From, typename T, typename To, bool kPushes, bool kStored>
void LoadedBinaryCode(PENSTOCK_CODE_PARAMETERS) {
  if constexpr (kPushes) {
    PENSTOCK_EACH_PAIR(F, PENSTOCK_PUSH)
  }
  const typename F::template D<T> d;
  const typename F::template D<To> to;
  constexpr size_t kLanes = kLanesOf<decltype(d)>;
  const From* HWY_RESTRICT a = Operand<const From>(ip);
  if (ip[1].vector_step == 0) {
    const auto second = hn::LoadU(d, Broadcast<T>(ip + 1));
#define PENSTOCK_BINARY(k) v##k = Grow(to, Op::Apply(d, LoadAs<From>(d, a + k * kLanes), second));
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_BINARY)
#undef PENSTOCK_BINARY
  } else {
    const T* HWY_RESTRICT b = Operand<const T>(ip + 1);
#define PENSTOCK_BINARY(k) \
  v##k = Grow(to, Op::Apply(d, LoadAs<From>(d, a + k * kLanes), hn::LoadU(d, b + k * kLanes)));
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_BINARY)
#undef PENSTOCK_BINARY
  }
  if constexpr (kStored) {
    PENSTOCK_STORE_RESULT(F, To, ip + 2)
    PENSTOCK_END_STEP(3)
  } else {
    PENSTOCK_NEXT_BUT(2);
  }
}

// accumulator = Op(accumulator, memory of type `Second`, memory); or result = the same.
template <class F, class Op, typename T, typename Second = T, bool kStored = false>
void TernaryCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  const typename F::template D<Second> d2;
#define PENSTOCK_SECOND(k) hn::LoadU(d2, p + k * kLanesOf<decltype(d2)>)
#define PENSTOCK_THIRD(k) hn::LoadU(d, q + k * kLanesOf<decltype(d)>)
  if (ip->vector_step == 0) {
    const auto second = hn::LoadU(d2, Broadcast<Second>(ip));
    if (ip->vector_step2 == 0) {
      const auto third = hn::LoadU(d, Broadcast2<T>(ip));
#define PENSTOCK_TERNARY(k) v##k = Grow(d, Op::Apply(d, Shrink(d, v##k), second, third));
      PENSTOCK_EACH_VECTOR(F, PENSTOCK_TERNARY)
#undef PENSTOCK_TERNARY
      PENSTOCK_END(F, T, kStored);
    }
    const T* HWY_RESTRICT q = Operand2<const T>(ip);
#define PENSTOCK_TERNARY(k) \
  v##k = Grow(d, Op::Apply(d, Shrink(d, v##k), second, PENSTOCK_THIRD(k)));
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_TERNARY)
#undef PENSTOCK_TERNARY
    PENSTOCK_END(F, T, kStored);
  }
  const Second* HWY_RESTRICT p = Operand<const Second>(ip);
  if (ip->vector_step2 == 0) {
    const auto third = hn::LoadU(d, Broadcast2<T>(ip));
#define PENSTOCK_TERNARY(k) \
  v##k = Grow(d, Op::Apply(d, Shrink(d, v##k), PENSTOCK_SECOND(k), third));
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_TERNARY)
#undef PENSTOCK_TERNARY
    PENSTOCK_END(F, T, kStored);
  }
  const T* HWY_RESTRICT q = Operand2<const T>(ip);
#define PENSTOCK_TERNARY(k) \
  v##k = Grow(d, Op::Apply(d, Shrink(d, v##k), PENSTOCK_SECOND(k), PENSTOCK_THIRD(k)));
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_TERNARY)
#undef PENSTOCK_TERNARY
#undef PENSTOCK_SECOND
  PENSTOCK_END(F, T, kStored);
}

// accumulator = Op(accumulator, aside of type `Second`, memory); or result = the same.
template <class F, class Op, typename T, typename Second = T, bool kStored = false>
void TernaryAsideCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  const typename F::template D<Second> d2;
  if (ip->vector_step2 == 0) {
    const auto third = hn::LoadU(d, Broadcast2<T>(ip));
#define PENSTOCK_TERNARY(k, aside) \
  v##k = Grow(d, Op::Apply(d, Shrink(d, v##k), Shrink(d2, v##aside), third));
    PENSTOCK_EACH_PAIR(F, PENSTOCK_TERNARY)
#undef PENSTOCK_TERNARY
    PENSTOCK_END(F, T, kStored);
  }
  const T* HWY_RESTRICT q = Operand2<const T>(ip);
#define PENSTOCK_TERNARY(k, aside) \
  v##k = Grow(d, Op::Apply(d, Shrink(d, v##k), Shrink(d2, v##aside), PENSTOCK_THIRD(k)));
  PENSTOCK_EACH_PAIR(F, PENSTOCK_TERNARY)
#undef PENSTOCK_TERNARY
#undef PENSTOCK_THIRD
  PENSTOCK_END(F, T, kStored);
}

// Applies a function of single values to each lane, for what no instruction set does.
template <class Scalar>
struct ByLane {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a) {
    using T = hn::TFromD<D>;
    HWY_ALIGN T x[kLanesOf<D>];
    hn::Store(a, d, x);
    for (T& value : x) value = Scalar::Apply(value);
    return hn::Load(d, x);
  }
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V a, V b) {
    using T = hn::TFromD<D>;
    HWY_ALIGN T x[kLanesOf<D>];
    HWY_ALIGN T y[kLanesOf<D>];
    hn::Store(a, d, x);
    hn::Store(b, d, y);
    for (size_t i = 0; i < kLanesOf<D>; ++i) x[i] = Scalar::Apply(x[i], y[i]);
    return hn::Load(d, x);
  }
};

template <class Op>
inline constexpr bool kIsByLane = false;
template <class Scalar>
inline constexpr bool kIsByLane<ByLane<Scalar>> = true;

template <typename T>
inline constexpr bool kIs64 = sizeof(T) == 8;
// Types that have code of eight vectors; the rarer ones make do with two.
template <typename T>
inline constexpr bool kHasWide = std::is_floating_point_v<T> || std::is_same_v<T, int32_t>;

#define PENSTOCK_HANDLER(...) (reinterpret_cast<Handler>(static_cast<Code>(&__VA_ARGS__)))

// The code of a form: FUNCTION<form's tag, …>, or null where the types do not fit it. `kWide`:
// whether eight and four vectors at once have code.
#define PENSTOCK_FORM(form, k64, kWide, FUNCTION, ...)                                    \
  if ((form).span == Span::kOne) return PENSTOCK_HANDLER(FUNCTION<OneLane, __VA_ARGS__>); \
  if ((form).span == Span::kShort) {                                                      \
    if ((form).has_64bit) return PENSTOCK_HANDLER(FUNCTION<Short64, __VA_ARGS__>);        \
    if constexpr (!(k64)) return PENSTOCK_HANDLER(FUNCTION<Short32, __VA_ARGS__>);        \
  } else if constexpr (kWide) {                                                           \
    if ((form).span == Span::kPair) {                                                     \
      if ((form).has_64bit) return PENSTOCK_HANDLER(FUNCTION<Pair64, __VA_ARGS__>);       \
      if constexpr (!(k64)) return PENSTOCK_HANDLER(FUNCTION<Pair32, __VA_ARGS__>);       \
    } else {                                                                              \
      if ((form).has_64bit) return PENSTOCK_HANDLER(FUNCTION<Wide64, __VA_ARGS__>);       \
      if constexpr (!(k64)) return PENSTOCK_HANDLER(FUNCTION<Wide32, __VA_ARGS__>);       \
    }                                                                                     \
  }                                                                                       \
  return nullptr

// The same for code with an operand aside, which eight vectors leave no registers for.
#define PENSTOCK_ASIDE_FORM(form, k64, FUNCTION, ...)                                     \
  if ((form).span == Span::kOne) return PENSTOCK_HANDLER(FUNCTION<OneLane, __VA_ARGS__>); \
  if ((form).span == Span::kShort) {                                                      \
    if ((form).has_64bit) return PENSTOCK_HANDLER(FUNCTION<Short64, __VA_ARGS__>);        \
    if constexpr (!(k64)) return PENSTOCK_HANDLER(FUNCTION<Short32, __VA_ARGS__>);        \
  } else if ((form).span == Span::kPair) {                                                \
    if ((form).has_64bit) return PENSTOCK_HANDLER(FUNCTION<Pair64, __VA_ARGS__>);         \
    if constexpr (!(k64)) return PENSTOCK_HANDLER(FUNCTION<Pair32, __VA_ARGS__>);         \
  }                                                                                       \
  return nullptr

// Four or eight vectors of the type's own size.
template <typename T, int kVectors>
using FusedTag = FormTag<kIs64<T>, kVectors, false>;

template <class Op, typename From, typename T, typename To>
Handler LoadedBinary(Form form) {
  const bool wide = form.span == Span::kWide;
  if (form.stored) {
    if constexpr (std::is_same_v<T, To>) {
      if (!wide || form.pushes) return nullptr;
      return PENSTOCK_HANDLER(LoadedBinaryCode<FusedTag<T, 8>, Op, From, T, To, false, true>);
    }
    return nullptr;
  }
  if (form.pushes && wide) return nullptr;
  if (form.pushes)
    return PENSTOCK_HANDLER(LoadedBinaryCode<FusedTag<T, 4>, Op, From, T, To, true, false>);
  if (wide)
    return PENSTOCK_HANDLER(LoadedBinaryCode<FusedTag<T, 8>, Op, From, T, To, false, false>);
  return PENSTOCK_HANDLER(LoadedBinaryCode<FusedTag<T, 4>, Op, From, T, To, false, false>);
}

template <class Op, typename T, typename To>
Handler FusedBinary(Form form) {
  if constexpr (std::is_floating_point_v<T> && !kIsByLane<Op>) {
    const bool wide = form.span == Span::kWide;
    if (form.has_64bit != kIs64<T> || (!wide && form.span != Span::kPair)) return nullptr;
    if (form.loaded != DType::kInvalid) {
      if (form.aside) return nullptr;
      if (form.loaded == (kIs64<T> ? DType::kFloat64 : DType::kFloat32))
        return LoadedBinary<Op, T, T, To>(form);
      if constexpr (!kIs64<T>) {
        if (form.loaded == DType::kUint8) return LoadedBinary<Op, uint8_t, T, To>(form);
      }
      return nullptr;
    }
    if constexpr (std::is_same_v<T, To>) {
      if (form.aside && wide) return nullptr;
      if (form.aside) return PENSTOCK_HANDLER(BinaryAsideCode<FusedTag<T, 4>, Op, T, T, true>);
      if (wide) return PENSTOCK_HANDLER(BinaryCode<FusedTag<T, 8>, Op, T, T, true>);
      return PENSTOCK_HANDLER(BinaryCode<FusedTag<T, 4>, Op, T, T, true>);
    }
  }
  return nullptr;
}

template <class Op, typename T, typename To = T>
Handler Unary(Form form) {
  if (form.is_fused()) return nullptr;
  constexpr bool k64 = kIs64<T> || kIs64<To>;
  PENSTOCK_FORM(form, k64, (kHasWide<T> && kHasWide<To>), UnaryCode, Op, T, To);
}

template <class Op, typename T, typename To = T>
Handler Binary(Form form) {
  if (form.is_fused()) return FusedBinary<Op, T, To>(form);
  constexpr bool k64 = kIs64<T> || kIs64<To>;
  if (form.aside) {
    if constexpr (kHasWide<T> && !kIsByLane<Op>) {
      PENSTOCK_ASIDE_FORM(form, k64, BinaryAsideCode, Op, T, To);
    }
    return nullptr;
  }
  PENSTOCK_FORM(form, k64, (kHasWide<T> && !kIsByLane<Op>), BinaryCode, Op, T, To);
}

template <class Op, typename T, typename Second>
Handler FusedTernary(Form form) {
  if constexpr (std::is_floating_point_v<T>) {
    const bool wide = form.span == Span::kWide;
    if (form.loaded != DType::kInvalid || form.has_64bit != kIs64<T>) return nullptr;
    if (wide && !form.aside)
      return PENSTOCK_HANDLER(TernaryCode<FusedTag<T, 8>, Op, T, Second, true>);
    if (form.span != Span::kPair) return nullptr;
    if (form.aside) return PENSTOCK_HANDLER(TernaryAsideCode<FusedTag<T, 4>, Op, T, Second, true>);
    return PENSTOCK_HANDLER(TernaryCode<FusedTag<T, 4>, Op, T, Second, true>);
  }
  return nullptr;
}

template <class Op, typename T, typename Second = T>
Handler Ternary(Form form) {
  if (form.is_fused()) return FusedTernary<Op, T, Second>(form);
  constexpr bool k64 = kIs64<T> || kIs64<Second>;
  if (form.aside) {
    if constexpr (kHasWide<T>) {
      PENSTOCK_ASIDE_FORM(form, k64, TernaryAsideCode, Op, T, Second);
    }
    return nullptr;
  }
  PENSTOCK_FORM(form, k64, kHasWide<T>, TernaryCode, Op, T, Second);
}

// make(a value of the lane's type), or null where the lane is of another kind.
template <class Make>
Handler ForFloats(Lane lane, const Make& make) {
  if (lane == Lane::kFloat32) return make(float{});
  if (lane == Lane::kFloat64) return make(double{});
  return nullptr;
}
template <class Make>
Handler ForIntegers(Lane lane, const Make& make) {
  if (lane == Lane::kInt32) return make(int32_t{});
  if (lane == Lane::kUint32) return make(uint32_t{});
  if (lane == Lane::kInt64) return make(int64_t{});
  if (lane == Lane::kUint64) return make(uint64_t{});
  return nullptr;
}
template <class Make>
Handler ForNumbers(Lane lane, const Make& make) {
  const Handler handler = ForFloats(lane, make);
  return handler != nullptr ? handler : ForIntegers(lane, make);
}

template <class Op>
Handler UnaryOfFloats(Lane lane, Form form) {
  return ForFloats(lane, [form](auto type) { return Unary<Op, decltype(type)>(form); });
}
template <class Op>
Handler BinaryOfFloats(Lane lane, Form form) {
  return ForFloats(lane, [form](auto type) { return Binary<Op, decltype(type)>(form); });
}

// Flags are int32 lanes of 0 and 1.
template <class D, class M>
HWY_INLINE auto FlagsFromMask(D d, M mask) {
  if constexpr (sizeof(hn::TFromD<D>) == 4) {
    const hn::RebindToSigned<D> di;
    return hn::IfThenElseZero(hn::RebindMask(di, mask), hn::Set(di, 1));
  } else {
    const hn::RebindToUnsigned<D> du;
    const hn::Rebind<uint32_t, D> du32;
    const hn::Rebind<int32_t, D> di32;
    const auto wide = hn::IfThenElseZero(hn::RebindMask(du, mask), hn::Set(du, 1));
    return hn::BitCast(di32, hn::TruncateTo(du32, wide));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#endif  // PENSTOCK_LANE_PROGRAM_INL_H_
