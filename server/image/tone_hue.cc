#include <algorithm>
#include <array>
#include <cmath>

#include "server/image/tone.h"

namespace penstock::expr {
namespace {

struct HueAndSaturation {
  uint8_t hue = 0;
  uint8_t saturation = 0;
};

// Of convert("HSV") of Pillow, whose value is the greatest channel: quotients in float32, the
// circle in float64, fractions dropped.
HueAndSaturation ToHue(const uint8_t* pixel, uint8_t greatest, uint8_t least) {
  if (greatest == least) return {};
  const auto spread = static_cast<float>(greatest - least);
  const auto below = [&](int channel) {
    return static_cast<float>(greatest - pixel[channel]) / spread;
  };
  float sixths;
  if (pixel[0] == greatest) {
    sixths = below(2) - below(1);
  } else if (pixel[1] == greatest) {
    sixths = static_cast<float>(2.0 + static_cast<double>(below(0)) - below(2));
  } else {
    sixths = static_cast<float>(4.0 + static_cast<double>(below(1)) - below(0));
  }
  const double turns = sixths / 6.0 + 1.0;
  const auto turn = static_cast<float>(turns < 1 ? turns : turns - 1);
  const float saturation = spread / static_cast<float>(greatest);
  return {static_cast<uint8_t>(turn * 255.0), static_cast<uint8_t>(saturation * 255.0)};
}

// Which channel of a hue is the greatest, the one between and the least, and how near the one
// between comes to the least: from falling hues it is further off the deeper they are in their
// sixth of the circle, and rounded once more on the way.
struct Sixth {
  uint8_t greatest = 0;
  uint8_t between = 0;
  uint8_t least = 0;
  bool falls = false;
  double depth = 0;
};

struct Tables {
  std::array<Sixth, 256> hues;
  std::array<double, 256> parts;  // of saturations
};

Tables MakeTables() {
  constexpr std::array<std::array<uint8_t, 3>, 6> kOrders = {
      {{0, 1, 2}, {1, 0, 2}, {1, 2, 0}, {2, 1, 0}, {2, 0, 1}, {0, 2, 1}}};
  Tables tables;
  for (size_t i = 0; i < 256; ++i) {
    const double place = static_cast<double>(i) * 6.0 / 255.0;
    const int sixth = static_cast<int>(place);
    const double rest = static_cast<float>(place - sixth);
    const auto& order = kOrders[static_cast<size_t>(sixth % 6)];
    const bool falls = sixth % 2 == 1;
    tables.hues[i] = {order[0], order[1], order[2], falls, falls ? rest : 1.0 - rest};
    tables.parts[i] = static_cast<float>(static_cast<double>(i) / 255.0);
  }
  return tables;
}

// convert("RGB") of a pixel of Pillow's HSV: float64, rounded half away from zero.
void ToRgb(const Sixth& sixth, double part, uint8_t value, uint8_t* out) {
  const auto less = [&](double by) { return static_cast<uint8_t>(value * (1.0 - by) + 0.5); };
  const double depth = part * sixth.depth;
  out[sixth.greatest] = value;
  out[sixth.between] = less(sixth.falls ? static_cast<double>(static_cast<float>(depth)) : depth);
  out[sixth.least] = less(part);
}

}  // namespace

NextRows StartHue(uint8_t shift, const ImageView& image) {
  if (image.channels != 3) return StartCopy(image);
  static const Tables kTables = MakeTables();
  return [image, shift, from = image.pixels](int64_t num_rows, uint8_t* out) mutable {
    const uint8_t* const end = from + num_rows * image.row_bytes();
    for (; from != end; from += 3, out += 3) {
      const auto [least, greatest] = std::minmax({from[0], from[1], from[2]});
      const HueAndSaturation colour = ToHue(from, greatest, least);
      if (colour.saturation == 0) {
        std::fill_n(out, 3, greatest);
        continue;
      }
      ToRgb(kTables.hues[static_cast<uint8_t>(colour.hue + shift)],
            kTables.parts[colour.saturation], greatest, out);
    }
  };
}

}  // namespace penstock::expr
