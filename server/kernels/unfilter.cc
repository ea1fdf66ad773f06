#include "server/kernels/unfilter.h"

#include <cstdlib>
#include <cstring>

// Before highway's own headers.
#include "server/kernels/targets.h"

#include "hwy/highway.h"

// One pixel is the whole of a vector, and each waits for the one before: wider sets have nothing to
// give, so this is compiled once, for the least of them.
HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using Bytes = hn::FixedTag<uint8_t, 16>;
using Words = hn::FixedTag<uint32_t, 4>;
using Pixel = hn::Vec<Bytes>;

// Four bytes, of which a pixel may have three.
HWY_INLINE Pixel LoadPixel(const uint8_t* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return hn::BitCast(Bytes(), hn::Set(Words(), word));
}

template <size_t kBytes>
HWY_INLINE void StorePixel(Pixel pixel, uint8_t* to) {
  const uint32_t word = hn::GetLane(hn::BitCast(Words(), pixel));
  std::memcpy(to, &word, kBytes);
}

struct Sub {
  static HWY_INLINE Pixel Predict(Pixel left, Pixel, Pixel) { return left; }
};

struct Average {
  static HWY_INLINE Pixel Predict(Pixel left, Pixel above, Pixel) {
    // The instruction rounds up.
    const Pixel odd = hn::And(hn::Xor(left, above), hn::Set(Bytes(), 1));
    return hn::Sub(hn::AverageRound(left, above), odd);
  }
};

struct Paeth {
  static HWY_INLINE Pixel Predict(Pixel left, Pixel above, Pixel corner) {
    const hn::FixedTag<int16_t, 8> wide;
    const auto promote = [&](Pixel pixel) { return hn::PromoteTo(wide, hn::LowerHalf(pixel)); };
    const auto a = promote(left), b = promote(above), c = promote(corner);
    const auto by_a = hn::Sub(b, c), by_b = hn::Sub(a, c);
    const auto distance_a = hn::Abs(by_a), distance_b = hn::Abs(by_b);
    const auto distance_c = hn::Abs(hn::Add(by_a, by_b));
    const auto least = hn::Min(distance_c, hn::Min(distance_a, distance_b));
    // Of equal distances left comes before above, and that before the corner.
    const auto nearest = hn::IfThenElse(hn::Eq(least, distance_a), a,
                                        hn::IfThenElse(hn::Eq(least, distance_b), b, c));
    return hn::ZeroExtendVector(Bytes(), hn::DemoteTo(hn::FixedTag<uint8_t, 8>(), nearest));
  }
};

template <class Filter, size_t kBytes>
void Unfilter(const uint8_t* row, const uint8_t* above, size_t bytes, uint8_t* out) {
  Pixel left = hn::Zero(Bytes()), corner = left;
  for (size_t i = 0; i < bytes; i += kBytes) {
    const Pixel up = LoadPixel(above + i);
    left = hn::Add(LoadPixel(row + i), Filter::Predict(left, up, corner));
    corner = up;
    StorePixel<kBytes>(left, out + i);
  }
}

}  // namespace HWY_NAMESPACE

namespace {

uint8_t PaethOf(int left, int above, int corner) {
  const int estimate = left + above - corner;
  const int a = std::abs(estimate - left), b = std::abs(estimate - above),
            c = std::abs(estimate - corner);
  if (a <= b && a <= c) return static_cast<uint8_t>(left);
  return static_cast<uint8_t>(b <= c ? above : corner);
}

}  // namespace

void UnfilterRowScalar(int filter, int pixel_bytes, const uint8_t* row, const uint8_t* above,
                       size_t bytes, uint8_t* out) {
  const auto step = static_cast<size_t>(pixel_bytes);
  for (size_t i = 0; i < bytes; ++i) {
    const uint8_t left = i < step ? 0 : out[i - step];
    const uint8_t corner = i < step ? 0 : above[i - step];
    uint8_t predicted = 0;
    if (filter == 1) predicted = left;
    if (filter == 2) predicted = above[i];
    if (filter == 3) predicted = static_cast<uint8_t>((left + above[i]) / 2);
    if (filter == 4) predicted = PaethOf(left, above[i], corner);
    out[i] = static_cast<uint8_t>(row[i] + predicted);
  }
}

void UnfilterRow(int filter, int pixel_bytes, const uint8_t* row, const uint8_t* above,
                 size_t bytes, uint8_t* out) {
  if (filter == 0) {
    std::memcpy(out, row, bytes);
    return;
  }
  if (filter == 2) {
    for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<uint8_t>(row[i] + above[i]);
    return;
  }
  if (pixel_bytes < 3) return UnfilterRowScalar(filter, pixel_bytes, row, above, bytes, out);
  using namespace HWY_NAMESPACE;  // NOLINT: the one set that this file is compiled for
  const bool three = pixel_bytes == 3;
  if (filter == 1) {
    return three ? Unfilter<Sub, 3>(row, above, bytes, out)
                 : Unfilter<Sub, 4>(row, above, bytes, out);
  }
  if (filter == 3) {
    return three ? Unfilter<Average, 3>(row, above, bytes, out)
                 : Unfilter<Average, 4>(row, above, bytes, out);
  }
  return three ? Unfilter<Paeth, 3>(row, above, bytes, out)
               : Unfilter<Paeth, 4>(row, above, bytes, out);
}

}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();
