#include "server/kernels/byte_blend.h"

#include <algorithm>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/byte_blend.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Words = hn::RebindToSigned<Floats>;
using Bytes = hn::ScalableTag<uint8_t>;
constexpr size_t kFew = hn::MaxLanes(Floats());  // values of 32 bits
constexpr size_t kMany = hn::MaxLanes(Bytes());  // bytes

HWY_INLINE hn::Vec<Words> LoadFew(const uint8_t* from) {
  return hn::PromoteTo(Words(), hn::LoadU(hn::Rebind<uint8_t, Words>(), from));
}

HWY_INLINE void BlendFew(hn::Vec<Words> start, const uint8_t* to, hn::Vec<Floats> factor,
                         uint8_t* out) {
  const Floats d;
  const auto way = hn::ConvertTo(d, hn::Sub(LoadFew(to), start));
  const auto sum = hn::Add(hn::ConvertTo(d, start), hn::Mul(factor, way));
  const auto clipped = hn::Min(hn::Max(sum, hn::Zero(d)), hn::Set(d, 255.0F));
  const hn::Rebind<uint8_t, Words> bytes;
  hn::StoreU(hn::DemoteTo(bytes, hn::ConvertTo(Words(), clipped)), bytes, out);
}

void BlendAll(const uint8_t* from, const uint8_t* to, size_t count, float factor, uint8_t* out) {
  const auto factors = hn::Set(Floats(), factor);
  size_t i = 0;
  for (; i + kFew <= count; i += kFew) BlendFew(LoadFew(from + i), to + i, factors, out + i);
  BlendBytesScalar(from + i, to + i, count - i, factor, out + i);
}

void BlendFromOne(uint8_t from, const uint8_t* to, size_t count, float factor, uint8_t* out) {
  const auto factors = hn::Set(Floats(), factor);
  const auto start = hn::Set(Words(), from);
  size_t i = 0;
  for (; i + kFew <= count; i += kFew) BlendFew(start, to + i, factors, out + i);
  BlendFromScalar(from, to + i, count - i, factor, out + i);
}

void InvertAll(const uint8_t* in, size_t count, uint8_t threshold, uint8_t* out) {
  const Bytes d;
  const auto least = hn::Set(d, threshold);
  size_t i = 0;
  for (; i + kMany <= count; i += kMany) {
    const auto values = hn::LoadU(d, in + i);
    const auto is_less = hn::Ne(hn::Max(values, least), values);
    hn::StoreU(hn::IfThenElse(is_less, values, hn::Not(values)), d, out + i);
  }
  InvertBytesScalar(in + i, count - i, threshold, out + i);
}

void MaskAll(const uint8_t* in, size_t count, uint8_t mask, uint8_t* out) {
  const Bytes d;
  const auto masks = hn::Set(d, mask);
  size_t i = 0;
  for (; i + kMany <= count; i += kMany)
    hn::StoreU(hn::And(hn::LoadU(d, in + i), masks), d, out + i);
  MaskBytesScalar(in + i, count - i, mask, out + i);
}

// Pixels of three channels, their colours apart and their greys.
struct Pixels {
  HWY_ALIGN uint8_t red[kMany];
  HWY_ALIGN uint8_t green[kMany];
  HWY_ALIGN uint8_t blue[kMany];
  HWY_ALIGN uint8_t grey[kMany];

  // The sum of greys, a lane for each.
  HWY_INLINE hn::Vec<Words> Load(const uint8_t* from) {
    const Bytes d;
    const Words words;
    hn::Vec<Bytes> r, g, b;
    hn::LoadInterleaved3(d, from, r, g, b);
    hn::Store(r, d, red);
    hn::Store(g, d, green);
    hn::Store(b, d, blue);
    auto sum = hn::Zero(words);
    for (size_t i = 0; i < kMany; i += kFew) {
      const auto weighted = hn::Add(hn::Add(hn::Mul(LoadFew(red + i), hn::Set(words, 19595)),
                                            hn::Mul(LoadFew(green + i), hn::Set(words, 38470))),
                                    hn::Mul(LoadFew(blue + i), hn::Set(words, 7471)));
      const auto value = hn::ShiftRight<16>(hn::Add(weighted, hn::Set(words, 0x8000)));
      const hn::Rebind<uint8_t, Words> bytes;
      hn::Store(hn::DemoteTo(bytes, value), bytes, grey + i);
      sum = hn::Add(sum, value);
    }
    return sum;
  }
};

void BlendGrey(const uint8_t* pixels, size_t num_pixels, float factor, uint8_t* out) {
  const auto factors = hn::Set(Floats(), factor);
  size_t i = 0;
  for (; i + kMany <= num_pixels; i += kMany) {
    Pixels part;
    part.Load(pixels + 3 * i);
    for (uint8_t* const colour : {part.red, part.green, part.blue})
      for (size_t k = 0; k < kMany; k += kFew)
        BlendFew(LoadFew(part.grey + k), colour + k, factors, colour + k);
    const Bytes d;
    hn::StoreInterleaved3(hn::Load(d, part.red), hn::Load(d, part.green), hn::Load(d, part.blue), d,
                          out + 3 * i);
  }
  BlendWithGreyScalar(pixels + 3 * i, num_pixels - i, factor, out + 3 * i);
}

uint64_t SumGreys(const uint8_t* pixels, size_t num_pixels) {
  // So many vectors of bytes cannot overflow a lane.
  constexpr size_t kAtOnce = 1 << 18;
  uint64_t total = 0;
  size_t i = 0;
  while (i + kMany <= num_pixels) {
    auto sum = hn::Zero(Words());
    const size_t vectors = std::min((num_pixels - i) / kMany, kAtOnce);
    for (size_t k = 0; k < vectors; ++k, i += kMany) {
      Pixels part;
      sum = hn::Add(sum, part.Load(pixels + 3 * i));
    }
    HWY_ALIGN int32_t lanes[kFew];
    hn::Store(sum, Words(), lanes);
    for (const int32_t lane : lanes) total += static_cast<uint64_t>(lane);
  }
  return total + SumOfGreysScalar(pixels + 3 * i, num_pixels - i);
}

void SmoothAll(const uint8_t* above, const uint8_t* row, const uint8_t* below, size_t count,
               size_t channels, uint8_t* out) {
  const hn::ScalableTag<uint16_t> d;
  const hn::Rebind<uint8_t, decltype(d)> bytes;
  const hn::RebindToSigned<decltype(d)> shorts;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto load = [&](const uint8_t* from)
                        HWY_ATTR { return hn::PromoteTo(d, hn::LoadU(bytes, from)); };
  const auto three = [&](const uint8_t* from) HWY_ATTR {
    return hn::Add(hn::Add(load(from - channels), load(from)), load(from + channels));
  };
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const auto around = hn::Add(hn::Add(three(above + i), three(row + i)), three(below + i));
    const auto sum = hn::Add(around, hn::ShiftLeft<2>(load(row + i)));
    // Divided by 13, of sums of at most 13 * 255.
    const auto rounded =
        hn::MulHigh(hn::Add(sum, hn::Set(d, 6)), hn::Set(d, static_cast<uint16_t>(5042)));
    hn::StoreU(hn::DemoteTo(bytes, hn::BitCast(shorts, rounded)), bytes, out + i);
  }
  SmoothBytesScalar(above + i, row + i, below + i, count - i, channels, out + i);
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
namespace {

uint8_t Blended(uint8_t from, uint8_t to, float factor) {
  const float value = static_cast<float>(from) + factor * static_cast<float>(to - from);
  return static_cast<uint8_t>(std::min(std::max(value, 0.0F), 255.0F));
}

uint8_t Grey(const uint8_t* pixel) {
  return static_cast<uint8_t>((19595 * pixel[0] + 38470 * pixel[1] + 7471 * pixel[2] + 0x8000) >>
                              16);
}

}  // namespace

HWY_EXPORT(BlendAll);
HWY_EXPORT(BlendFromOne);
HWY_EXPORT(BlendGrey);
HWY_EXPORT(SumGreys);
HWY_EXPORT(SmoothAll);
HWY_EXPORT(InvertAll);
HWY_EXPORT(MaskAll);

void BlendBytes(const uint8_t* from, const uint8_t* to, size_t count, float factor, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(BlendAll)(from, to, count, factor, out);
}

void BlendFrom(uint8_t from, const uint8_t* to, size_t count, float factor, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(BlendFromOne)(from, to, count, factor, out);
}

void BlendWithGrey(const uint8_t* pixels, size_t num_pixels, float factor, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(BlendGrey)(pixels, num_pixels, factor, out);
}

uint64_t SumOfGreys(const uint8_t* pixels, size_t num_pixels) {
  return HWY_DYNAMIC_DISPATCH(SumGreys)(pixels, num_pixels);
}

void SmoothBytes(const uint8_t* above, const uint8_t* row, const uint8_t* below, size_t count,
                 size_t channels, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SmoothAll)(above, row, below, count, channels, out);
}

void InvertBytes(const uint8_t* in, size_t count, uint8_t threshold, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(InvertAll)(in, count, threshold, out);
}

void MaskBytes(const uint8_t* in, size_t count, uint8_t mask, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(MaskAll)(in, count, mask, out);
}

void BlendBytesScalar(const uint8_t* from, const uint8_t* to, size_t count, float factor,
                      uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = Blended(from[i], to[i], factor);
}

void BlendFromScalar(uint8_t from, const uint8_t* to, size_t count, float factor, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = Blended(from, to[i], factor);
}

void BlendWithGreyScalar(const uint8_t* pixels, size_t num_pixels, float factor, uint8_t* out) {
  for (size_t i = 0; i < num_pixels; ++i) {
    const uint8_t grey = Grey(pixels + 3 * i);
    for (size_t c = 3 * i; c < 3 * i + 3; ++c) out[c] = Blended(grey, pixels[c], factor);
  }
}

uint64_t SumOfGreysScalar(const uint8_t* pixels, size_t num_pixels) {
  uint64_t sum = 0;
  for (size_t i = 0; i < num_pixels; ++i) sum += Grey(pixels + 3 * i);
  return sum;
}

void SmoothBytesScalar(const uint8_t* above, const uint8_t* row, const uint8_t* below, size_t count,
                       size_t channels, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    unsigned sum = 4U * row[i];
    for (const uint8_t* const line : {above + i, row + i, below + i})
      sum += static_cast<unsigned>(*(line - channels)) + *line + *(line + channels);
    out[i] = static_cast<uint8_t>((2 * sum + 13) / 26);
  }
}

void InvertBytesScalar(const uint8_t* in, size_t count, uint8_t threshold, uint8_t* out) {
  for (size_t i = 0; i < count; ++i)
    out[i] = in[i] >= threshold ? static_cast<uint8_t>(255 - in[i]) : in[i];
}

void MaskBytesScalar(const uint8_t* in, size_t count, uint8_t mask, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) out[i] = in[i] & mask;
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
