#include "server/kernels/colour_circle.h"

#include <algorithm>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/colour_circle.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

struct Colours {
  V r, g, b;
};

HWY_INLINE V Constant(float value) { return hn::Set(D(), value); }

// The value where the hue's sixth is one of the two.
HWY_INLINE V InSixths(V sixth, float one, float other, V value, V otherwise) {
  return hn::IfThenElse(hn::Or(hn::Eq(sixth, Constant(one)), hn::Eq(sixth, Constant(other))), value,
                        otherwise);
}

// Replaces each vector of pixels by `map` of it.
template <class Map>
HWY_INLINE void ForPixels(const float* in, size_t num_pixels, float* out, const Map& map) {
  const D d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto run = [&](const float* from, float* to) HWY_ATTR {
    // What makes a Colours of nothing is compiled for no instruction set: g++ refuses it for NEON.
    V r, g, b;
    hn::LoadInterleaved3(d, from, r, g, b);
    const Colours pixel = map(Colours{r, g, b});
    hn::StoreInterleaved3(pixel.r, pixel.g, pixel.b, d, to);
  };
  size_t i = 0;
  for (; i + kLanes <= num_pixels; i += kLanes) run(in + 3 * i, out + 3 * i);
  if (i == num_pixels) return;
  float rest[3 * kLanes] = {};
  std::copy(in + 3 * i, in + 3 * num_pixels, rest);
  run(rest, rest);
  std::copy_n(rest, 3 * (num_pixels - i), out + 3 * i);
}

// Even sixths of the hue rise in their middle colour, odd ones fall.
HWY_INLINE V RiseOrFall(V sixth, V ratio) {
  const V falling = hn::Sub(Constant(1), ratio);
  return hn::IfThenElse(hn::Eq(sixth, Constant(5)), falling, InSixths(sixth, 1, 3, falling, ratio));
}

HWY_INLINE Colours Turned(Colours in, float sixths) {
  const V zero = Constant(0), six = Constant(6);
  // Red and green in order, and where blue is to them.
  const auto green = hn::Lt(in.r, in.g);
  const V lesser = hn::IfThenElse(green, in.r, in.g), greater = hn::IfThenElse(green, in.g, in.r);
  const auto below = hn::Lt(in.b, lesser), above = hn::Gt(in.b, greater);
  const V low = hn::IfThenElse(below, in.b, lesser), high = hn::IfThenElse(above, in.b, greater);
  const V middle = hn::IfThenElse(below, lesser, hn::IfThenElse(above, greater, in.b));
  const V of_green =
      hn::IfThenElse(below, Constant(1), hn::IfThenElse(above, Constant(3), Constant(2)));
  const V of_red = hn::IfThenElse(below, zero, hn::IfThenElse(above, Constant(4), Constant(5)));
  const V from = hn::IfThenElse(green, of_green, of_red);
  const V range = hn::Sub(high, low);
  V hue = hn::Add(from, RiseOrFall(from, hn::Div(hn::Sub(middle, low), range)));
  hue = hn::IfThenElse(hn::Eq(high, low), zero, hue);

  hue = hn::Add(hue, Constant(sixths));
  for (int i = 0; i < 2; ++i) hue = hn::IfThenElse(hn::Lt(hue, zero), hn::Add(hue, six), hue);
  for (int i = 0; i < 2; ++i) hue = hn::IfThenElse(hn::Ge(hue, six), hn::Sub(hue, six), hue);

  // NaN belongs to the last sixth.
  const auto inside = hn::And(hn::Ge(hue, zero), hn::Lt(hue, six));
  const V to = hn::IfThenElse(inside, hn::Trunc(hue), Constant(5));
  const V between = hn::Add(low, hn::Mul(RiseOrFall(to, hn::Sub(hue, to)), range));
  return {InSixths(to, 0, 5, high, InSixths(to, 1, 4, between, low)),
          InSixths(to, 1, 2, high, InSixths(to, 0, 3, between, low)),
          InSixths(to, 3, 4, high, InSixths(to, 2, 5, between, low))};
}

// Added in float64 and rounded then.
HWY_INLINE V AddDouble(V value, double summand) {
  const D d;
  const hn::Half<D> half;
  const hn::RepartitionToWide<D> wide;
  const auto add = [&](auto part) HWY_ATTR {
    return hn::DemoteTo(half, hn::Add(hn::PromoteTo(wide, part), hn::Set(wide, summand)));
  };
  return hn::Combine(d, add(hn::UpperHalf(half, value)), add(hn::LowerHalf(half, value)));
}

// As std::max and std::min choose between equal values and NaN.
HWY_INLINE V Greater(V a, V b) { return hn::IfThenElse(hn::Lt(a, b), b, a); }
HWY_INLINE V Lesser(V a, V b) { return hn::IfThenElse(hn::Lt(b, a), b, a); }

HWY_INLINE Colours Saturated(Colours in, float factor) {
  const V zero = Constant(0), one = Constant(1), two = Constant(2);
  const V value = Greater(in.r, Greater(in.g, in.b));
  const V range = hn::Sub(value, Lesser(in.r, Lesser(in.g, in.b)));
  const V norm = hn::Div(one, hn::Mul(Constant(6), range));
  const V of_red = hn::Mul(norm, hn::Sub(in.g, in.b));
  const V of_green = AddDouble(hn::Mul(norm, hn::Sub(in.b, in.r)), 2.0 / 6.0);
  const V of_blue = AddDouble(hn::Mul(norm, hn::Sub(in.r, in.g)), 4.0 / 6.0);
  V hue = hn::IfThenElse(hn::Eq(in.r, value), of_red,
                         hn::IfThenElse(hn::Eq(in.g, value), of_green, of_blue));
  hue = hn::IfThenElse(hn::Lt(hue, zero), hn::Add(hue, one), hue);
  hue = hn::Mul(hn::IfThenElse(hn::Gt(range, zero), hue, zero), Constant(6));

  V saturation = hn::IfThenElse(hn::Gt(value, zero), hn::Div(range, value), zero);
  saturation = Lesser(one, Greater(zero, hn::Mul(saturation, Constant(factor))));
  const V chroma = hn::Mul(saturation, value);
  const V base = hn::Sub(value, chroma);

  // Into [0, 2), by whole steps.
  V phase = hn::IfThenElse(hn::Le(hue, zero), hn::Add(hue, two), hue);
  for (int i = 0; i < 2; ++i)
    phase = hn::IfThenElse(hn::Ge(phase, two), hn::Sub(phase, two), phase);
  const V second = hn::Mul(chroma, hn::Sub(one, hn::Abs(hn::Sub(phase, one))));
  // A hue beyond the circle, which damaged floats can have, is in no sixth, and black.
  const auto inside = hn::And(hn::Ge(hue, zero), hn::Lt(hue, Constant(6)));
  const V sixth = hn::IfThenElse(inside, hn::Trunc(hue), Constant(-1));
  return {hn::Add(InSixths(sixth, 0, 5, chroma, InSixths(sixth, 1, 4, second, zero)), base),
          hn::Add(InSixths(sixth, 1, 2, chroma, InSixths(sixth, 0, 3, second, zero)), base),
          hn::Add(InSixths(sixth, 3, 4, chroma, InSixths(sixth, 2, 5, second, zero)), base)};
}

void TurnHue(const float* in, size_t num_pixels, float sixths, float* out) {
  ForPixels(in, num_pixels, out, [&](Colours pixel) HWY_ATTR { return Turned(pixel, sixths); });
}

void ScaleSaturation(const float* in, size_t num_pixels, float factor, float* out) {
  ForPixels(in, num_pixels, out, [&](Colours pixel) HWY_ATTR { return Saturated(pixel, factor); });
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(TurnHue);
HWY_EXPORT(ScaleSaturation);

void TurnHue(const float* in, size_t num_pixels, float sixths, float* out) {
  HWY_DYNAMIC_DISPATCH(TurnHue)(in, num_pixels, sixths, out);
}
void ScaleSaturation(const float* in, size_t num_pixels, float factor, float* out) {
  HWY_DYNAMIC_DISPATCH(ScaleSaturation)(in, num_pixels, factor, out);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
