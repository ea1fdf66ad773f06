#include "server/kernels/mix_pixels.h"

#include <algorithm>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/mix_pixels.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

#if HWY_MAX_BYTES >= 32

// The channels of one pixel side by side; of three, the next pixel's first is computed with them.
using D = hn::FixedTag<double, 4>;
using V = hn::Vec<D>;

HWY_INLINE V LoadPixel(const uint8_t* pixel) {
  const hn::FixedTag<int32_t, 4> words;
  return hn::PromoteTo(D(), hn::PromoteTo(words, hn::LoadU(hn::FixedTag<uint8_t, 4>(), pixel)));
}

HWY_INLINE void StorePixel(V value, uint8_t* out) {
  const hn::FixedTag<int32_t, 4> words;
  const hn::FixedTag<uint8_t, 4> bytes;
  hn::StoreU(hn::DemoteTo(bytes, hn::DemoteTo(words, value)), bytes, out);
}

HWY_INLINE V Linear(V v1, V v2, V d) { return hn::Add(v1, hn::Mul(hn::Sub(v2, v1), d)); }

HWY_INLINE V Cubic(V v1, V v2, V v3, V v4, V d) {
  const V p2 = hn::Sub(v3, v1);
  const V twice = hn::Sub(v1, v2);
  const V p3 = hn::Sub(hn::Add(hn::Add(twice, twice), v3), v4);
  const V p4 = hn::Add(hn::Sub(hn::Sub(v2, v1), v3), v4);
  return hn::Add(v2, hn::Mul(d, hn::Add(p2, hn::Mul(d, hn::Add(p3, hn::Mul(d, p4))))));
}

void Bilinear(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
              uint8_t* out) {
  const D d;
  for (int64_t i = first; i < end; ++i, out += grid.channels) {
    const double x = line.X(i), y = line.Y(i);
    const auto left = static_cast<int64_t>(x), top = static_cast<int64_t>(y);
    const V dx = hn::Set(d, x - static_cast<double>(left));
    const V dy = hn::Set(d, y - static_cast<double>(top));
    const uint8_t* const pixel = grid.At(top, left);
    const auto across = [&](const uint8_t* row) HWY_ATTR {
      return Linear(LoadPixel(row), LoadPixel(row + grid.channels), dx);
    };
    StorePixel(Linear(across(pixel), across(pixel + grid.row_bytes), dy), out);
  }
}

void Bicubic(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
             uint8_t* out) {
  const D d;
  const V zero = hn::Zero(d), most = hn::Set(d, 255.0);
  for (int64_t i = first; i < end; ++i, out += grid.channels) {
    const double x = line.X(i), y = line.Y(i);
    const auto left = static_cast<int64_t>(x), top = static_cast<int64_t>(y);
    const V dx = hn::Set(d, x - static_cast<double>(left));
    const V dy = hn::Set(d, y - static_cast<double>(top));
    const size_t c = grid.channels;
    const uint8_t* const corner = grid.At(top - 1, left - 1);
    const auto across = [&](size_t row) HWY_ATTR {
      const uint8_t* const p = corner + row * grid.row_bytes;
      return Cubic(LoadPixel(p), LoadPixel(p + c), LoadPixel(p + 2 * c), LoadPixel(p + 3 * c), dx);
    };
    const V value = Cubic(across(0), across(1), across(2), across(3), dy);
    StorePixel(hn::Min(hn::Max(value, zero), most), out);
  }
}

#else

void Bilinear(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
              uint8_t* out) {
  MixBilinearScalar(grid, line, first, end, out);
}
void Bicubic(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
             uint8_t* out) {
  MixBicubicScalar(grid, line, first, end, out);
}

#endif

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(Bilinear);
HWY_EXPORT(Bicubic);

void MixBilinear(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                 uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Bilinear)(grid, line, first, end, out);
}

void MixBicubic(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Bicubic)(grid, line, first, end, out);
}

void MixBilinearScalar(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                       uint8_t* out) {
  const size_t channels = grid.channels;
  for (int64_t i = first; i < end; ++i) {
    const double x = line.X(i), y = line.Y(i);
    const auto left = static_cast<int64_t>(x), top = static_cast<int64_t>(y);
    const double dx = x - static_cast<double>(left), dy = y - static_cast<double>(top);
    const uint8_t* above = grid.At(top, left);
    const uint8_t* below = above + grid.row_bytes;
    for (size_t c = 0; c < channels; ++c, ++above, ++below) {
      const double v1 = *above + (above[channels] - *above) * dx;
      const double v2 = *below + (below[channels] - *below) * dx;
      *out++ = static_cast<uint8_t>(v1 + (v2 - v1) * dy);
    }
  }
}

void MixBicubicScalar(const PixelGrid& grid, const PixelLine& line, int64_t first, int64_t end,
                      uint8_t* out) {
  const size_t channels = grid.channels;
  const auto cubic = [](double v1, double v2, double v3, double v4, double d) {
    const double p2 = v3 - v1;
    const double p3 = 2 * (v1 - v2) + v3 - v4;
    const double p4 = v2 - v1 - v3 + v4;
    return v2 + d * (p2 + d * (p3 + d * p4));
  };
  for (int64_t i = first; i < end; ++i) {
    const double x = line.X(i), y = line.Y(i);
    const auto left = static_cast<int64_t>(x), top = static_cast<int64_t>(y);
    const double dx = x - static_cast<double>(left), dy = y - static_cast<double>(top);
    const uint8_t* corner = grid.At(top - 1, left - 1);
    for (size_t c = 0; c < channels; ++c, ++corner) {
      double rows[4];
      for (size_t k = 0; k < 4; ++k) {
        const uint8_t* const p = corner + k * grid.row_bytes;
        rows[k] = cubic(p[0], p[channels], p[2 * channels], p[3 * channels], dx);
      }
      const double value = cubic(rows[0], rows[1], rows[2], rows[3], dy);
      *out++ = static_cast<uint8_t>(std::clamp(value, 0.0, 255.0));
    }
  }
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
