// The instructions that every lane program needs (loads, stores, conversions) and the loop over
// steps.
#include "server/kernels/lane_program.h"

#include <algorithm>
#include <memory>
#include <new>

#include "hwy/cache_control.h"
#include "server/kernels/saturate.h"
#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/lane_program.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/lane_program-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

// Goes on with the next step, as far as there is one: a call for each would cost more than this.
void FinishCode(PENSTOCK_CODE_PARAMETERS) {
  s->cursor[1] += s->step_elements;
  for (int i = 2; i < s->num_cursors; ++i) {
    const size_t next = s->cursor[i] + s->step_elements % s->periods[i];
    s->cursor[i] = next >= s->periods[i] ? next - s->periods[i] : next;
  }
  if (--s->steps_left == 0) return;
  ip = s->first;
  PENSTOCK_NEXT_BUT(0);
}

template <class F, typename From, typename To>
void LoadCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<To> d;
  if (ip->vector_step == 0) {
    const Bytes same = Grow(d, LoadAs<From>(d, Broadcast<From>(ip)));
    // No more vectors than the form has: what lies aside stays.
#define PENSTOCK_LOAD(k) v##k = same;
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_LOAD)
#undef PENSTOCK_LOAD
    PENSTOCK_NEXT();
  }
  const From* HWY_RESTRICT p = Operand<const From>(ip);
#define PENSTOCK_LOAD(k) v##k = Grow(d, LoadAs<From>(d, p + k * kLanesOf<decltype(d)>));
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_LOAD)
#undef PENSTOCK_LOAD
  PENSTOCK_NEXT();
}

// The same once the accumulator lies aside.
template <class F, typename From, typename To>
void LoadAsideCode(PENSTOCK_CODE_PARAMETERS) {
  PENSTOCK_EACH_PAIR(F, PENSTOCK_PUSH)
  const typename F::template D<To> d;
  if (ip->vector_step == 0) {
    const Bytes same = Grow(d, LoadAs<From>(d, Broadcast<From>(ip)));
#define PENSTOCK_LOAD(k) v##k = same;
    PENSTOCK_EACH_VECTOR(F, PENSTOCK_LOAD)
#undef PENSTOCK_LOAD
    PENSTOCK_NEXT();
  }
  const From* HWY_RESTRICT p = Operand<const From>(ip);
#define PENSTOCK_LOAD(k) v##k = Grow(d, LoadAs<From>(d, p + k * kLanesOf<decltype(d)>));
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_LOAD)
#undef PENSTOCK_LOAD
  PENSTOCK_NEXT();
}

// A result of floating type.
template <class F, typename T>
void StoreResultCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  T* HWY_RESTRICT p = Operand<T>(ip);
  constexpr size_t kStep = kLanesOf<decltype(d)>;
#define PENSTOCK_STORE(k) hn::StoreU(CanonicalNan(d, Shrink(d, v##k)), d, p + k * kStep);
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_STORE)
#undef PENSTOCK_STORE
  PENSTOCK_END_STEP(1)
}

template <class F, typename T, typename To>
void StoreCode(PENSTOCK_CODE_PARAMETERS) {
  const typename F::template D<T> d;
  const hn::Rebind<To, decltype(d)> to;
  To* HWY_RESTRICT p = Operand<To>(ip);
  constexpr size_t kStep = kLanesOf<decltype(d)>;
#define PENSTOCK_STORE(k)                                             \
  if constexpr (std::is_same_v<T, To>) {                              \
    hn::StoreU(Shrink(d, v##k), d, p + k * kStep);                    \
  } else {                                                            \
    hn::StoreU(hn::DemoteTo(to, Shrink(d, v##k)), to, p + k * kStep); \
  }
  PENSTOCK_EACH_VECTOR(F, PENSTOCK_STORE)
#undef PENSTOCK_STORE
  PENSTOCK_NEXT();
}

// The load and store of memory `M` into lanes `T` in every form that has them. `in_32bit_form`:
// 64-bit memory that is narrowed while it is loaded does not make a form 64-bit.
template <typename M, typename T>
Handler LoadFor(Form form) {
  if (form.aside) {
    PENSTOCK_ASIDE_FORM(form, kIs64<T>, LoadAsideCode, M, T);
  }
  PENSTOCK_FORM(form, kIs64<T>, kHasWide<T>, LoadCode, M, T);
}

template <typename T, typename M>
Handler StoreFor(Form form) {
  PENSTOCK_FORM(form, kIs64<T>, kHasWide<T>, StoreCode, T, M);
}

template <typename T>
Handler StoreResultFor(Form form) {
  PENSTOCK_FORM(form, kIs64<T>, true, StoreResultCode, T);
}

template <typename To>
struct ConvertOp {
  template <class D, class V>
  static HWY_INLINE auto Apply(D d, V v) {
    using From = hn::TFromD<D>;
    const hn::Rebind<To, D> to;
    constexpr bool kFromInt32 = std::is_same_v<From, int32_t>;
    if constexpr (std::is_same_v<From, float> && std::is_same_v<To, int32_t>) {
      // Highway saturates; NaN compares unequal to itself.
      return hn::ConvertTo(to, hn::IfThenElseZero(hn::Eq(v, v), v));
    } else if constexpr (kFromInt32 && std::is_same_v<To, float>) {
      return hn::ConvertTo(to, v);
    } else if constexpr ((kFromInt32 || std::is_same_v<From, float>)&&std::is_same_v<To, double>) {
      return hn::PromoteTo(to, v);
    } else if constexpr (kFromInt32 && std::is_same_v<To, int64_t>) {
      return hn::PromoteTo(to, v);
    } else if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>) {
      return hn::DemoteTo(to, v);
    } else {
      HWY_ALIGN From in[kLanesOf<D>];
      HWY_ALIGN To out[kLanesOf<D>];
      hn::Store(v, d, in);
      for (size_t i = 0; i < kLanesOf<D>; ++i) out[i] = SaturateCast<To>(in[i]);
      return hn::Load(to, out);
    }
  }
};

template <int kShift, bool kSigned>
struct WrapOp {
  template <class D, class V>
  static HWY_INLINE V Apply(D d, V v) {
    if constexpr (kSigned) return hn::ShiftRight<kShift>(hn::ShiftLeft<kShift>(v));
    return hn::And(v, hn::Set(d, static_cast<int32_t>((1u << (32 - kShift)) - 1)));
  }
};

template <typename From>
Handler ConvertFrom(Lane to, Form form) {
  switch (to) {
    case Lane::kInt32:
      return Unary<ConvertOp<int32_t>, From, int32_t>(form);
    case Lane::kUint32:
      return Unary<ConvertOp<uint32_t>, From, uint32_t>(form);
    case Lane::kInt64:
      return Unary<ConvertOp<int64_t>, From, int64_t>(form);
    case Lane::kUint64:
      return Unary<ConvertOp<uint64_t>, From, uint64_t>(form);
    case Lane::kFloat32:
      return Unary<ConvertOp<float>, From, float>(form);
    case Lane::kFloat64:
      return Unary<ConvertOp<double>, From, double>(form);
  }
  return nullptr;
}

Handler FindConvert(Lane from, Lane to, Form form) {
  switch (from) {
    case Lane::kInt32:
      return ConvertFrom<int32_t>(to, form);
    case Lane::kUint32:
      return ConvertFrom<uint32_t>(to, form);
    case Lane::kInt64:
      return ConvertFrom<int64_t>(to, form);
    case Lane::kUint64:
      return ConvertFrom<uint64_t>(to, form);
    case Lane::kFloat32:
      return ConvertFrom<float>(to, form);
    case Lane::kFloat64:
      return ConvertFrom<double>(to, form);
  }
  return nullptr;
}

Handler FindLoad(DType memory, Lane lane, Form form) {
  switch (memory) {
    case DType::kBool:
    case DType::kUint8:
      return lane == Lane::kInt32 ? LoadFor<uint8_t, int32_t>(form) : nullptr;
    case DType::kInt8:
      return lane == Lane::kInt32 ? LoadFor<int8_t, int32_t>(form) : nullptr;
    case DType::kUint16:
      return lane == Lane::kInt32 ? LoadFor<uint16_t, int32_t>(form) : nullptr;
    case DType::kInt16:
      return lane == Lane::kInt32 ? LoadFor<int16_t, int32_t>(form) : nullptr;
    case DType::kInt32:
      return lane == Lane::kInt32 ? LoadFor<int32_t, int32_t>(form) : nullptr;
    case DType::kUint32:
      return lane == Lane::kUint32 ? LoadFor<uint32_t, uint32_t>(form) : nullptr;
    case DType::kInt64:
      return lane == Lane::kInt64 ? LoadFor<int64_t, int64_t>(form) : nullptr;
    case DType::kUint64:
      return lane == Lane::kUint64 ? LoadFor<uint64_t, uint64_t>(form) : nullptr;
    case DType::kFloat32:
      return lane == Lane::kFloat32 ? LoadFor<float, float>(form) : nullptr;
    case DType::kFloat64:
      return lane == Lane::kFloat64 ? LoadFor<double, double>(form) : nullptr;
    default:
      return nullptr;
  }
}

Handler FindLoadConverted(DType memory, Lane lane, Form form) {
  if (lane != Lane::kFloat32) return nullptr;
  switch (memory) {
    case DType::kBool:
    case DType::kUint8:
      return LoadFor<uint8_t, float>(form);
    case DType::kInt8:
      return LoadFor<int8_t, float>(form);
    case DType::kUint16:
      return LoadFor<uint16_t, float>(form);
    case DType::kInt16:
      return LoadFor<int16_t, float>(form);
    case DType::kInt64:
      return LoadFor<int64_t, float>(form);
    case DType::kFloat64:
      return LoadFor<double, float>(form);
    default:
      return nullptr;
  }
}

Handler FindStore(DType memory, Lane lane, Form form) {
  switch (memory) {
    case DType::kBool:
    case DType::kUint8:
      return lane == Lane::kInt32 ? StoreFor<int32_t, uint8_t>(form) : nullptr;
    case DType::kInt8:
      return lane == Lane::kInt32 ? StoreFor<int32_t, int8_t>(form) : nullptr;
    case DType::kUint16:
      return lane == Lane::kInt32 ? StoreFor<int32_t, uint16_t>(form) : nullptr;
    case DType::kInt16:
      return lane == Lane::kInt32 ? StoreFor<int32_t, int16_t>(form) : nullptr;
    case DType::kInt32:
      return lane == Lane::kInt32 ? StoreFor<int32_t, int32_t>(form) : nullptr;
    case DType::kUint32:
      return lane == Lane::kUint32 ? StoreFor<uint32_t, uint32_t>(form) : nullptr;
    case DType::kInt64:
      return lane == Lane::kInt64 ? StoreFor<int64_t, int64_t>(form) : nullptr;
    case DType::kUint64:
      return lane == Lane::kUint64 ? StoreFor<uint64_t, uint64_t>(form) : nullptr;
    case DType::kFloat32:
      return lane == Lane::kFloat32 ? StoreFor<float, float>(form) : nullptr;
    case DType::kFloat64:
      return lane == Lane::kFloat64 ? StoreFor<double, double>(form) : nullptr;
    default:
      return nullptr;
  }
}

Handler FindStoreResult(DType memory, Lane lane, Form form) {
  if (lane == Lane::kFloat32) return StoreResultFor<float>(form);
  if (lane == Lane::kFloat64) return StoreResultFor<double>(form);
  return FindStore(memory, lane, form);
}

Handler FindWrap(DType narrow, Form form) {
  switch (narrow) {
    case DType::kInt8:
      return Unary<WrapOp<24, true>, int32_t>(form);
    case DType::kUint8:
      return Unary<WrapOp<24, false>, int32_t>(form);
    case DType::kInt16:
      return Unary<WrapOp<16, true>, int32_t>(form);
    case DType::kUint16:
      return Unary<WrapOp<16, false>, int32_t>(form);
    default:
      return nullptr;
  }
}

Handler FindFinish() { return PENSTOCK_HANDLER(FinishCode); }

size_t TargetVectorBytes() { return sizeof(Bytes); }

void RunTargetSteps(const Instruction* first, LaneState& state, size_t step_elements, size_t steps,
                    const uint32_t* periods, int num_cursors) {
  if (steps == 0) return;
  // Memory that is not cleared before: of many short runs that would be a good part.
  constexpr size_t kStackInstructions = 32;
  alignas(BoundInstruction) unsigned char stack[kStackInstructions * sizeof(BoundInstruction)];
  std::unique_ptr<BoundInstruction[]> heap;
  auto* bound = reinterpret_cast<BoundInstruction*>(stack);
  size_t count = 1;
  const Handler finish = FindFinish();
  while (first[count - 1].run != finish) ++count;
  if (count > kStackInstructions) {
    heap = std::make_unique<BoundInstruction[]>(count);
    bound = heap.get();
  }
  for (size_t i = 0; i < count; ++i) {
    const Instruction& from = first[i];
    new (bound + i) BoundInstruction{from.run,
                                     state.base[from.operand],
                                     &state.cursor[from.cursor],
                                     state.base[from.operand2],
                                     &state.cursor[from.cursor2],
                                     from.vector_step,
                                     from.vector_step2};
  }
  state.first = bound;
  state.step_elements = step_elements;
  state.periods = periods;
  state.num_cursors = num_cursors;
  // Where a compiler makes calls of the sibling calls, they end after so many steps.
  constexpr size_t kStepsAtOnce = 16;
  const Bytes zero = hn::Zero(hn::ScalableTag<uint8_t>());
  for (size_t done = 0; done < steps; done += kStepsAtOnce) {
    state.steps_left = std::min(steps - done, kStepsAtOnce);
    reinterpret_cast<Code>(bound->run)(bound, &state, zero, zero, zero, zero, zero, zero, zero,
                                       zero);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(FindConvert);
HWY_EXPORT(FindLoad);
HWY_EXPORT(FindLoadConverted);
HWY_EXPORT(FindStore);
HWY_EXPORT(FindStoreResult);
HWY_EXPORT(FindWrap);
HWY_EXPORT(FindFinish);
HWY_EXPORT(TargetVectorBytes);
HWY_EXPORT(RunTargetSteps);

Handler Finish() { return HWY_DYNAMIC_DISPATCH(FindFinish)(); }
Handler Load(DType memory, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(FindLoad)(memory, lane, form);
}
Handler LoadConverted(DType memory, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(FindLoadConverted)(memory, lane, form);
}
Handler Store(DType memory, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(FindStore)(memory, lane, form);
}
Handler StoreResult(DType memory, Lane lane, Form form) {
  return HWY_DYNAMIC_DISPATCH(FindStoreResult)(memory, lane, form);
}
Handler Convert(Lane from, Lane to, Form form) {
  return HWY_DYNAMIC_DISPATCH(FindConvert)(from, to, form);
}
Handler WrapInteger(DType narrow, Form form) {
  return HWY_DYNAMIC_DISPATCH(FindWrap)(narrow, form);
}

size_t VectorBytes() { return HWY_DYNAMIC_DISPATCH(TargetVectorBytes)(); }

size_t StepElements(Form form) {
  if (form.span == Span::kOne) return 1;
  const size_t vectors = form.span == Span::kWide ? 8 : form.span == Span::kPair ? 4 : 2;
  return vectors * VectorElements(form);
}

size_t VectorElements(Form form) {
  return form.span == Span::kOne ? 1 : VectorBytes() / (form.has_64bit ? 8 : 4);
}

void FinishStores() { hwy::FlushStream(); }

StepLoop FindStepLoop() { return HWY_DYNAMIC_DISPATCH(RunTargetSteps); }

}  // namespace penstock::kernels
#endif  // HWY_ONCE
