// Hue and saturation by vectors against one pixel after the other, on every instruction set, at all
// tail lengths.
#include "server/kernels/colour_circle.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
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

void TurnOne(const float* in, float sixths, float* out) {
  Hue hue = FromRgb(in[0], in[1], in[2]);
  hue.hue += sixths;
  while (hue.hue < 0) hue.hue += 6;
  while (hue.hue >= 6) hue.hue -= 6;
  ToRgb(hue, out);
}

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

bool HasBits(float found, float expected) {
  return std::bit_cast<uint32_t>(found) == std::bit_cast<uint32_t>(expected) ||
         (std::isnan(found) && std::isnan(expected));
}

// Ties, greys, zeros of both signs, values beyond the circle, infinity and NaN among them.
float Drawn(std::mt19937& random) {
  static constexpr float kSpecial[] = {0,
                                       -0.0F,
                                       0.5F,
                                       1,
                                       255,
                                       -3,
                                       std::numeric_limits<float>::infinity(),
                                       std::numeric_limits<float>::quiet_NaN()};
  if (random() % 3 == 0) return kSpecial[random() % (random() % 4 == 0 ? 8 : 4)];
  return static_cast<float>(random()) / 0x1p32F;
}

using Pixels = std::function<void(const float* in, size_t num_pixels, float* out)>;

void CheckPixels(const Pixels& by_vectors, const Pixels& one_by_one) {
  std::mt19937 random(9);
  ForEachInstructionSet([&](const char*) {
    for (size_t num_pixels = 0; num_pixels < 120; ++num_pixels) {
      const GuardedMemory in(num_pixels * 3 * sizeof(float)), out(num_pixels * 3 * sizeof(float));
      std::generate_n(in.As<float>(), num_pixels * 3, [&] { return Drawn(random); });
      std::vector<float> want(num_pixels * 3);
      one_by_one(in.As<float>(), num_pixels, want.data());
      by_vectors(in.As<float>(), num_pixels, out.As<float>());
      for (size_t i = 0; i < want.size(); ++i) {
        const float* const pixel = in.As<float>() + i / 3 * 3;
        CAPTURE(num_pixels, i, pixel[0], pixel[1], pixel[2], out.As<float>()[i], want[i]);
        REQUIRE(HasBits(out.As<float>()[i], want[i]));
      }
      // In place.
      by_vectors(in.As<float>(), num_pixels, in.As<float>());
      REQUIRE(std::equal(want.begin(), want.end(), in.As<float>(), HasBits));
    }
  });
}

TEST_CASE("The hue of many pixels") {
  for (const float sixths : {0.0F, 0.6F, -0.6F, 1.0F, 3.0F, -3.0F, 5.9F, 6.0F, -6.0F}) {
    CAPTURE(sixths);
    CheckPixels(
        [&](const float* in, size_t n, float* out) { kernels::TurnHue(in, n, sixths, out); },
        [&](const float* in, size_t n, float* out) {
          for (size_t i = 0; i < n; ++i) TurnOne(in + 3 * i, sixths, out + 3 * i);
        });
  }
}

TEST_CASE("The saturation of many pixels") {
  for (const float factor : {0.0F, 0.3F, 1.0F, 1.7F, 100.0F}) {
    CAPTURE(factor);
    CheckPixels([&](const float* in, size_t n,
                    float* out) { kernels::ScaleSaturation(in, n, factor, out); },
                [&](const float* in, size_t n, float* out) {
                  for (size_t i = 0; i < n; ++i) Saturate(in + 3 * i, factor, out + 3 * i);
                });
  }
}

}  // namespace
}  // namespace penstock::testing
