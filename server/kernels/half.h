// Conversions to the two floating types of 16 bits, rounded to nearest, ties to even, and from
// them: float16 (IEEE 754 binary16) and bfloat16 (the upper half of a float32).
//
// Threads: functions without state.
// Cost:    about a nanosecond a value for bfloat16, a few for float16.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace penstock::kernels {

// NaN stays a quiet NaN; beyond the largest is infinity.
inline uint16_t ToBfloat16(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  if ((bits & 0x7fffffff) > 0x7f800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Rounded once, as NumPy does: not by way of float32.
inline uint16_t ToFloat16(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  const auto sign = static_cast<uint16_t>(bits >> 48 & 0x8000);
  const uint64_t magnitude = bits & ~(uint64_t{1} << 63);
  constexpr uint64_t kInfinity = uint64_t{0x7ff} << 52;
  if (magnitude > kInfinity) return sign | 0x7e00;
  const int exponent = static_cast<int>(magnitude >> 52) - 1023;
  if (exponent > 15) return sign | 0x7c00;
  if (exponent < -25) return sign;
  // The 53 digits, of which those below the last one that is kept decide the rounding. A carry goes
  // on into the exponent, where it belongs, up to infinity.
  const uint64_t digits = (magnitude & ((uint64_t{1} << 52) - 1)) | uint64_t{1} << 52;
  const int dropped = exponent < -14 ? 42 + (-14 - exponent) : 42;
  const uint64_t half = uint64_t{1} << (dropped - 1);
  const uint64_t kept = (digits + half - 1 + (digits >> dropped & 1)) >> dropped;
  const int above = exponent < -14 ? 0 : exponent + 14;
  return static_cast<uint16_t>(sign + (above << 10) + kept);
}

// Of a type that NumPy converts by way of float32, which loses nothing or is what it does.
inline uint16_t ToFloat16(float value) { return ToFloat16(static_cast<double>(value)); }

// Every value of both is one of float32; a NaN stays one with its bits, and is a quiet one.
inline float FromBits(uint32_t bits) {
  if ((bits & 0x7fffffff) > 0x7f800000) bits |= 0x400000;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}
inline float FromBfloat16(uint16_t half) { return FromBits(uint32_t{half} << 16); }
inline float FromFloat16(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = half >> 10 & 0x1f;
  const uint32_t digits = half & 0x3ffu;
  if (exponent == 0x1f) return FromBits(sign | 0x7f800000 | digits << 13);
  if (exponent != 0) return FromBits(sign | (exponent + 112) << 23 | digits << 13);
  // A multiple of 2^-24.
  const float magnitude = static_cast<float>(digits) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace penstock::kernels
