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

// Of convert("HSV") of Pillow, whose value is the greatest channel: quotients in float32, the circle in float64, fractions dropped.
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

// In which sixth of the circle a hue lies, and how far into it.
struct Sixth {
  int number = 0;
  float rest = 0;
};

std::array<Sixth, 256> MakeSixths() {
  std::array<Sixth, 256> sixths;
  for (size_t hue = 0; hue < sixths.size(); ++hue) {
    const double place = static_cast<double>(static_cast<float>(hue)) * 6.0 / 255.0;
    const int number = static_cast<int>(place);
    sixths[hue] = {number % 6, static_cast<float>(place - number)};
  }
  return sixths;
}

// convert("RGB") of a pixel of Pillow's HSV: float64, rounded half away from zero.
void ToRgb(const Sixth& sixth, uint8_t saturation, uint8_t value, uint8_t* out) {
  const double part = static_cast<float>(saturation / 255.0);
  const double rest = sixth.rest;
  const auto scaled = [&](double by) {
    return static_cast<uint8_t>(std::clamp(value * by + 0.5, 0.0, 255.0));
  };
  const uint8_t least = scaled(1.0 - part);
  const uint8_t falling = scaled(1.0 - static_cast<double>(static_cast<float>(part * rest)));
  const uint8_t rising = scaled(1.0 - part * (1.0 - rest));
  const std::array<std::array<uint8_t, 3>, 6> colours = {{{value, rising, least},
                                                          {falling, value, least},
                                                          {least, value, rising},
                                                          {least, falling, value},
                                                          {rising, least, value},
                                                          {value, least, falling}}};
  std::copy_n(colours[static_cast<size_t>(sixth.number)].data(), 3, out);
}

}  // namespace

NextRows StartHue(uint8_t shift, const ImageView& image) {
  if (image.channels != 3) return StartCopy(image);
  static const std::array<Sixth, 256> kSixths = MakeSixths();
  return [image, shift, from = image.pixels](int64_t num_rows, uint8_t* out) mutable {
    const uint8_t* const end = from + num_rows * image.row_bytes();
    for (; from != end; from += 3, out += 3) {
      const auto [least, greatest] = std::minmax({from[0], from[1], from[2]});
      const HueAndSaturation colour = ToHue(from, greatest, least);
      if (colour.saturation == 0) {
        std::fill_n(out, 3, greatest);
        continue;
      }
      ToRgb(kSixths[static_cast<uint8_t>(colour.hue + shift)], colour.saturation, greatest, out);
    }
  };
}

}  // namespace penstock::expr
