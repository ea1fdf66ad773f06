// A matrix product whose every value is added in one order, k from 0 up, product by product: the
// same bits on every instruction set.
//
// Threads:  pure.
// Cost:     a multiplication and an addition for each product, in vectors along a row of the
//           result.
#pragma once

#include <cstddef>

namespace penstock::kernels {

// out[m][n] = sum over k of x[m][k] * w[k][n], all in C order. `out` must not overlap the others.
void MultiplyMatrix(const float* x, const float* w, size_t rows, size_t inner, size_t columns,
                    float* out);
void MultiplyMatrix(const double* x, const double* w, size_t rows, size_t inner, size_t columns,
                    double* out);
void MultiplyMatrixScalar(const float* x, const float* w, size_t rows, size_t inner, size_t columns,
                          float* out);
void MultiplyMatrixScalar(const double* x, const double* w, size_t rows, size_t inner,
                          size_t columns, double* out);

}  // namespace penstock::kernels
