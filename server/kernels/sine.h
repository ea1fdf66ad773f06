// Sine and cosine, rounded once, mostly without the x87.
//
// float32 is computed in float64 to some 2^-50 of the value, float64 in pairs of it to some 2^-65
// (where products are fused with additions: sine-inl.h); where both ends of that interval round to
// one number, it is the one that extended precision gives. Any other value, and those too large to
// be reduced this way, are left to the x87: bits are the same everywhere.
//
// Threads:  pure.
// Cost:     some 10 ns a float, by vectors (sine-inl.h) 1 to 2, of float64 some 5; the x87 takes 50
//           to 400.
#pragma once

namespace penstock::kernels {

// Below it a multiple of pi/2 has at most 20 bits, whose products with the first two parts of pi/2
// are exact.
inline constexpr float kReducible = 1 << 19;
inline constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
// pi/2 in parts of 33, 33 and 53 bits.
inline constexpr double kHalfPi1 = 0x1.921fb544p+0;
inline constexpr double kHalfPi2 = 0x1.0b4611a6p-34;
inline constexpr double kHalfPi3 = 0x1.3198a2e037073p-69;
// Several times what the polynomials and their rounding may be wrong by.
inline constexpr double kSineError = 0x1p-46;
// The same of pairs, and of the extended precision.
inline constexpr double kSineErrorDouble = 0x1p-61;

float SineOf(float x);
float CosineOf(float x);

// The twins, which define the bits.
float SineByX87(float x);
float CosineByX87(float x);
double SineByX87(double x);
double CosineByX87(double x);

}  // namespace penstock::kernels
