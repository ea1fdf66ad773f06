#include "server/kernels/image_arithmetic.h"

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/image_arithmetic.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "server/kernels/power-inl.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Does `work(tag, i)` for vectors, and for the single values behind the last of them.
template <class Work>
HWY_INLINE void ForEach(size_t count, const Work& work) {
  const hn::CappedTag<float, kCentrePadding> d;
  size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) work(d, i);
  for (; i < count; ++i) work(hn::CappedTag<float, 1>(), i);
}

void AddToAll(const float* in, size_t count, float value, float* out) {
  ForEach(count, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, in + i), hn::Set(d, value)), d, out + i);
  });
}

void PowerOfAll(const float* in, size_t count, float exponent, float factor, float* out) {
  ForEach(count, [&](auto d, size_t i) HWY_ATTR {
    const auto power = PowerOfFloats(d, hn::LoadU(d, in + i), hn::Set(d, exponent));
    hn::StoreU(hn::Mul(hn::Set(d, factor), power), d, out + i);
  });
}

void AddPairs(const float* first, const float* second, size_t count, float* out) {
  ForEach(count, [&](auto d, size_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, first + i), hn::LoadU(d, second + i)), d, out + i);
  });
}

void AddQuarters(const float* in, size_t count, float* out) {
  ForEach(count, [&](auto d, size_t i) HWY_ATTR {
    const auto even = hn::Add(hn::LoadU(d, in + i), hn::LoadU(d, in + i + 2 * count));
    const auto odd = hn::Add(hn::LoadU(d, in + i + count), hn::LoadU(d, in + i + 3 * count));
    hn::StoreU(hn::Add(even, odd), d, out + i);
  });
}

void StretchAround(const float* in, size_t count, const float* centres, size_t period, float factor,
                   float* out) {
  size_t phase = 0;
  ForEach(count, [&](auto d, size_t i) HWY_ATTR {
    const auto centre = hn::LoadU(d, centres + phase);
    const auto distance = hn::Sub(hn::LoadU(d, in + i), centre);
    hn::StoreU(hn::Add(centre, hn::Mul(hn::Set(d, factor), distance)), d, out + i);
    phase += hn::Lanes(d) % period;
    if (phase >= period) phase -= period;
  });
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(AddToAll);
HWY_EXPORT(PowerOfAll);
HWY_EXPORT(AddPairs);
HWY_EXPORT(AddQuarters);
HWY_EXPORT(StretchAround);

void AddToAll(const float* in, size_t count, float value, float* out) {
  HWY_DYNAMIC_DISPATCH(AddToAll)(in, count, value, out);
}
void PowerOfAll(const float* in, size_t count, float exponent, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(PowerOfAll)(in, count, exponent, factor, out);
}
void AddPairs(const float* first, const float* second, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(AddPairs)(first, second, count, out);
}
void AddQuarters(const float* in, size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(AddQuarters)(in, count, out);
}
void StretchAround(const float* in, size_t count, const float* centres, size_t period, float factor,
                   float* out) {
  HWY_DYNAMIC_DISPATCH(StretchAround)(in, count, centres, period, factor, out);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
