#include "server/kernels/extreme.h"

#include <type_traits>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/extreme.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <Extreme kExtreme, class D, class V>
HWY_INLINE V Choose(D d, V best, V value) {
  if constexpr (std::is_floating_point_v<hn::TFromD<D>>) {
    const auto holds = kExtreme == Extreme::kLeast ? hn::Le(best, value) : hn::Ge(best, value);
    return hn::IfThenElse(hn::Or(holds, hn::IsNaN(best)), best, value);
  } else {
    return kExtreme == Extreme::kLeast ? hn::Min(best, value) : hn::Max(best, value);
  }
}

template <typename T, Extreme kExtreme>
void TakeRow(void* best, const void* values, size_t count) {
  T* const to = static_cast<T*>(best);
  const T* const from = static_cast<const T*>(values);
  const auto take = [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(Choose<kExtreme>(d, hn::LoadU(d, to + i), hn::LoadU(d, from + i)), d, to + i);
  };
  const hn::ScalableTag<T> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) take(d, i);
  for (; i < count; ++i) take(hn::CappedTag<T, 1>(), i);
}

template <Extreme kExtreme>
ExtremeCode CodeOf(DType dtype) {
  switch (dtype) {
    case DType::kBool:
    case DType::kUint8:
      return TakeRow<uint8_t, kExtreme>;
    case DType::kInt8:
      return TakeRow<int8_t, kExtreme>;
    case DType::kUint16:
      return TakeRow<uint16_t, kExtreme>;
    case DType::kInt16:
      return TakeRow<int16_t, kExtreme>;
    case DType::kUint32:
      return TakeRow<uint32_t, kExtreme>;
    case DType::kInt32:
      return TakeRow<int32_t, kExtreme>;
    case DType::kUint64:
      return TakeRow<uint64_t, kExtreme>;
    case DType::kInt64:
      return TakeRow<int64_t, kExtreme>;
    case DType::kFloat32:
      return TakeRow<float, kExtreme>;
    case DType::kFloat64:
      return TakeRow<double, kExtreme>;
    default:
      return nullptr;
  }
}

ExtremeCode ExtremeOf(DType dtype, Extreme extreme) {
  return extreme == Extreme::kLeast ? CodeOf<Extreme::kLeast>(dtype)
                                    : CodeOf<Extreme::kGreatest>(dtype);
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(ExtremeOf);

ExtremeCode FindExtreme(DType dtype, Extreme extreme) {
  return HWY_DYNAMIC_DISPATCH(ExtremeOf)(dtype, extreme);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
