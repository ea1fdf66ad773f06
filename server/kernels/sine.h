// Sine and cosine of float32, rounded once, mostly without the x87.
//
// Computed in float64 to some 2^-50 of the value; where both ends of that interval round to one float, it is the one that extended
// precision gives. Any other value, and those too large to be reduced this way, are left to the x87: bits are the same everywhere.
//
// Threads:  pure.
// Cost:     some 10 ns a value; the x87 takes 50 to 400.
#pragma once

namespace penstock::kernels {

float SineOf(float x);
float CosineOf(float x);

// The twins, which define the bits.
float SineByX87(float x);
float CosineByX87(float x);

}  // namespace penstock::kernels
