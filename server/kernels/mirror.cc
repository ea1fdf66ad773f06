#include "server/kernels/mirror.h"

#include <cstring>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/mirror.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A vector holds `at_once` pixels and a rest, which is less than a pixel. Both ends of the row are
// left to single pixels, so that the rest is never outside of it. `load_and_store(from, to)` moves
// a vector.
template <class LoadAndStore>
HWY_INLINE void MirrorBy(const uint8_t* in, size_t count, size_t pixel_bytes, size_t at_once,
                         uint8_t* out, const LoadAndStore& load_and_store) {
  size_t i = 0;
  if (count > at_once + 1) {
    MirrorPixelsScalar(in + (count - 1) * pixel_bytes, 1, pixel_bytes, out);
    for (i = 1; i + at_once < count; i += at_once) {
      load_and_store(in + (count - i - at_once) * pixel_bytes, out + i * pixel_bytes);
    }
  }
  MirrorPixelsScalar(in, count - i, pixel_bytes, out + i * pixel_bytes);
}

// Pixels of up to eight bytes, in any 16.
void MirrorBytes(const uint8_t* HWY_RESTRICT in, size_t count, size_t pixel_bytes,
                 uint8_t* HWY_RESTRICT out) {
  const hn::FixedTag<uint8_t, 16> d;
  const size_t at_once = 16 / pixel_bytes;
  alignas(16) uint8_t from[16] = {};
  for (size_t i = 0; i < at_once * pixel_bytes; ++i) {
    from[i] = static_cast<uint8_t>((at_once - 1 - i / pixel_bytes) * pixel_bytes + i % pixel_bytes);
  }
  const auto shuffle = hn::Load(d, from);
  MirrorBy(in, count, pixel_bytes, at_once, out, [&](const uint8_t* p, uint8_t* q) HWY_ATTR {
    hn::StoreU(hn::TableLookupBytes(hn::LoadU(d, p), shuffle), d, q);
  });
}

// Pixels of whole 32-bit words, of which a vector holds one at least.
void MirrorWords(const uint8_t* HWY_RESTRICT in, size_t count, size_t pixel_bytes,
                 uint8_t* HWY_RESTRICT out) {
  const hn::CappedTag<uint32_t, 16> d;
  constexpr size_t kLanes = hn::MaxLanes(hn::CappedTag<uint32_t, 16>());
  const size_t words = pixel_bytes / 4;
  const size_t at_once = kLanes / words;
  alignas(64) int32_t from[kLanes] = {};
  for (size_t i = 0; i < at_once * words; ++i) {
    from[i] = static_cast<int32_t>((at_once - 1 - i / words) * words + i % words);
  }
  const auto indices = hn::SetTableIndices(d, from);
  MirrorBy(in, count, pixel_bytes, at_once, out, [&](const uint8_t* p, uint8_t* q) HWY_ATTR {
    const auto pixels = hn::LoadU(d, reinterpret_cast<const uint32_t*>(p));
    hn::StoreU(hn::TableLookupLanes(pixels, indices), d, reinterpret_cast<uint32_t*>(q));
  });
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(MirrorBytes);
HWY_EXPORT(MirrorWords);

void MirrorPixelsScalar(const uint8_t* in, size_t count, size_t pixel_bytes, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    std::memcpy(out + i * pixel_bytes, in + (count - 1 - i) * pixel_bytes, pixel_bytes);
  }
}

void MirrorPixels(const uint8_t* in, size_t count, size_t pixel_bytes, uint8_t* out) {
  if (pixel_bytes == 4 || pixel_bytes == 8 || pixel_bytes == 12 || pixel_bytes == 16) {
    HWY_DYNAMIC_DISPATCH(MirrorWords)(in, count, pixel_bytes, out);
  } else if (pixel_bytes > 0 && pixel_bytes < 8) {
    HWY_DYNAMIC_DISPATCH(MirrorBytes)(in, count, pixel_bytes, out);
  } else {
    MirrorPixelsScalar(in, count, pixel_bytes, out);
  }
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
