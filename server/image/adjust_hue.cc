#include "server/image/adjust.h"

#include <utility>

namespace penstock::expr {
namespace {

// Hue in sixths of the circle, between the least and the greatest of the three colours. Even sixths
// rise in their middle colour, odd ones fall.
struct Hue {
  float hue;
  float low;
  float high;
};

Hue FromRgb(float r, float g, float b) {
  int sixth;
  float low, middle, high;
  if (r < g) {
    if (b < r) {
      sixth = 1, low = b, middle = r, high = g;
    } else if (b > g) {
      sixth = 3, low = r, middle = g, high = b;
    } else {
      sixth = 2, low = r, middle = b, high = g;
    }
  } else if (b < g) {
    sixth = 0, low = b, middle = g, high = r;
  } else if (b > r) {
    sixth = 4, low = g, middle = r, high = b;
  } else {
    sixth = 5, low = g, middle = b, high = r;
  }
  if (high == low) return {0, low, high};
  const float ratio = (middle - low) / (high - low);
  return {static_cast<float>(sixth) + (sixth % 2 == 0 ? ratio : 1 - ratio), low, high};
}

void ToRgb(const Hue& from, float* rgb) {
  // NaN belongs to the last sixth.
  const int sixth = from.hue >= 0 && from.hue < 6 ? static_cast<int>(from.hue) : 5;
  float ratio = from.hue - static_cast<float>(sixth);
  if (sixth % 2 != 0) ratio = 1 - ratio;
  const float middle = from.low + ratio * (from.high - from.low);
  // Which colour is the greatest, the middle one and the least.
  static constexpr int kOrders[6][3] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0},
                                        {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};
  rgb[kOrders[sixth][0]] = from.high;
  rgb[kOrders[sixth][1]] = middle;
  rgb[kOrders[sixth][2]] = from.low;
}

}  // namespace

PixelMap HueMap(float delta) {
  const auto apply = [turn = delta * 6](const float* in, int64_t num_pixels, int64_t, float* out) {
    for (int64_t i = 0; i < num_pixels; ++i, in += 3, out += 3) {
      Hue hue = FromRgb(in[0], in[1], in[2]);
      hue.hue += turn;
      // At most once or twice: the sum is between -6 and 12.
      while (hue.hue < 0) hue.hue += 6;
      while (hue.hue >= 6) hue.hue -= 6;
      ToRgb(hue, out);
    }
  };
  return {.apply = apply, .channels_in = 3};
}

}  // namespace penstock::expr
