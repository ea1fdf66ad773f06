#include "server/kernels/pixel_planes.h"

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/pixel_planes.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Whole vectors of pixels from `first` on; gives back how many are done then.
template <class D>
HWY_INLINE size_t SplitBy(D d, const uint8_t* HWY_RESTRICT in, size_t first, size_t pixels,
                          uint8_t* HWY_RESTRICT out) {
  size_t i = first;
  for (; i + hn::Lanes(d) <= pixels; i += hn::Lanes(d)) {
    hn::Vec<D> red, green, blue;
    hn::LoadInterleaved3(d, in + 3 * i, red, green, blue);
    hn::StoreU(red, d, out + i);
    hn::StoreU(green, d, out + pixels + i);
    hn::StoreU(blue, d, out + 2 * pixels + i);
  }
  return i;
}

void Split(const uint8_t* HWY_RESTRICT in, size_t pixels, uint8_t* HWY_RESTRICT out) {
  size_t i = SplitBy(hn::ScalableTag<uint8_t>(), in, 0, pixels, out);
  i = SplitBy(hn::CappedTag<uint8_t, 16>(), in, i, pixels, out);
  for (; i < pixels; ++i) {
    for (size_t c = 0; c < 3; ++c) out[c * pixels + i] = in[3 * i + c];
  }
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(Split);

void SplitThreePlanes(const uint8_t* in, size_t pixels, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Split)(in, pixels, out);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
