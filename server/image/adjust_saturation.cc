#include "server/image/adjust.h"

#include <algorithm>
#include <cmath>

namespace penstock::expr {
namespace {

// The hue in parts of the circle. Its offsets are added in float64 before they are rounded, as in
// TensorFlow.
float HueOf(float r, float g, float b, float value, float range) {
  if (!(range > 0)) return 0;
  const float norm = 1.0f / (6.0f * range);
  float hue;
  if (r == value) {
    hue = norm * (g - b);
  } else if (g == value) {
    hue = static_cast<float>(norm * (b - r) + 2.0 / 6.0);
  } else {
    hue = static_cast<float>(norm * (r - g) + 4.0 / 6.0);
  }
  return hue < 0 ? hue + 1 : hue;
}

void Saturate(const float* in, float factor, float* out) {
  const float r = in[0], g = in[1], b = in[2];
  const float value = std::max(r, std::max(g, b));
  const float range = value - std::min(r, std::min(g, b));
  const float hue = HueOf(r, g, b, value, range) * 6;
  float saturation = value > 0 ? range / value : 0;
  saturation = std::min(1.0f, std::max(0.0f, saturation * factor));
  const float chroma = saturation * value;
  const float base = value - chroma;
  float rgb[3] = {0, 0, 0};
  // A hue beyond the circle, which damaged floats can have, is black there.
  if (hue >= 0 && hue < 6) {
    // Into (0, 2), by whole steps.
    float phase = hue;
    if (phase <= 0) phase += 2;
    while (phase >= 2) phase -= 2;
    const float second = chroma * (1 - std::fabs(phase - 1));
    static constexpr int kFirst[6] = {0, 1, 1, 2, 2, 0};
    static constexpr int kSecond[6] = {1, 0, 2, 1, 0, 2};
    const int sixth = static_cast<int>(hue);
    rgb[kFirst[sixth]] = chroma;
    rgb[kSecond[sixth]] = second;
  }
  for (int c = 0; c < 3; ++c) out[c] = rgb[c] + base;
}

}  // namespace

PixelMap SaturationMap(float factor) {
  const auto apply = [factor](const float* in, int64_t num_pixels, int64_t, float* out) {
    for (int64_t i = 0; i < num_pixels; ++i, in += 3, out += 3) Saturate(in, factor, out);
  };
  return {.apply = apply, .channels_in = 3};
}

}  // namespace penstock::expr
