// Sums of floating values in float64, by a fixed tree: the same bits on every instruction set.
//
// Threads:  pure.
// Cost:     a pass over the values; 16 bytes a cycle and more where they lie in L1.
#pragma once

#include <cstddef>

namespace penstock::kernels {

// Value i is added to partial sum i % kSumLanes, each in order; the partial sums are then added in pairs of halves: 0 with
// kSumLanes / 2, and so on. The twin is the definition.
inline constexpr size_t kSumLanes = 32;

double Sum(const float* values, size_t count);
double Sum(const double* values, size_t count);
// Of (value - center) ** 2, in float64.
double SumOfSquares(const float* values, size_t count, double center);
double SumOfSquares(const double* values, size_t count, double center);

double SumScalar(const float* values, size_t count);
double SumScalar(const double* values, size_t count);
double SumOfSquaresScalar(const float* values, size_t count, double center);
double SumOfSquaresScalar(const double* values, size_t count, double center);

}  // namespace penstock::kernels
