#include "base/float16.h"

#include <bit>
#include <cmath>

namespace penstock {

uint16_t Float16FromDouble(double value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  // From the middle between the largest number and what would follow it.
  if (size >= 65520) return sign | 0x7c00;
  // Numbers below 2^-14 are multiples of 2^-24; those from 2^e on, of 2^(e - 10). A fraction that
  // is rounded up to the next power of two carries into the exponent by itself.
  if (size < 0x1p-14) return sign | static_cast<uint16_t>(std::nearbyint(size * 0x1p24));
  const int exponent = std::ilogb(size);
  const auto fraction = static_cast<uint16_t>(std::nearbyint(std::ldexp(size, 10 - exponent)));
  return sign | static_cast<uint16_t>(((exponent + 14) << 10) + fraction);
}

uint16_t Bfloat16FromFloat(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 31 << 15) | 0x7fc0);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace penstock
