// Sums of floating values in float64, by a fixed tree: the same bits on every instruction set.
//
// Threads:  pure.
// Cost:     a pass over the values; 16 bytes a cycle and more where they lie in L1.
#pragma once

#include <cstddef>

namespace penstock::kernels {

// Value i is added to partial sum i % kSumLanes, each in order; the partial sums are then added in
// pairs of halves: 0 with kSumLanes / 2, and so on. The twin is the definition.
inline constexpr size_t kSumLanes = 32;

double Sum(const float* values, size_t count);
double Sum(const double* values, size_t count);
// Of (value - center) ** 2, in float64.
double SumOfSquares(const float* values, size_t count, double center);
double SumOfSquares(const double* values, size_t count, double center);

// totals[c] = the sum of in[r * columns + c] over the rows r, one after the other from 0 on; or of
// (in[…] - centres[c]) ** 2, where centres are given. `columns` centres and totals, rows * columns
// values.
void SumColumns(const float* in, size_t rows, size_t columns, const double* centres,
                double* totals);
void SumColumns(const double* in, size_t rows, size_t columns, const double* centres,
                double* totals);

double SumScalar(const float* values, size_t count);
double SumScalar(const double* values, size_t count);
double SumOfSquaresScalar(const float* values, size_t count, double center);
double SumOfSquaresScalar(const double* values, size_t count, double center);

}  // namespace penstock::kernels
