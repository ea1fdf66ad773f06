#include "server/kernels/matrix.h"

#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/matrix.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, typename T>
HWY_INLINE void Columns(D d, const T* HWY_RESTRICT x, const T* HWY_RESTRICT w, size_t inner,
                        size_t columns, T* HWY_RESTRICT out) {
  auto sum = hn::Zero(d);
  for (size_t k = 0; k < inner; ++k) {
    sum = hn::Add(sum, hn::Mul(hn::Set(d, x[k]), hn::LoadU(d, w + k * columns)));
  }
  hn::StoreU(sum, d, out);
}

template <typename T>
void Multiply(const T* HWY_RESTRICT x, const T* HWY_RESTRICT w, size_t rows, size_t inner,
              size_t columns, T* HWY_RESTRICT out) {
  const hn::ScalableTag<T> d;
  const hn::CappedTag<T, 1> one;
  constexpr size_t kLanes = hn::MaxLanes(d);
  for (size_t m = 0; m < rows; ++m, x += inner, out += columns) {
    size_t n = 0;
    for (; n + kLanes <= columns; n += kLanes) Columns(d, x, w + n, inner, columns, out + n);
    for (; n < columns; ++n) Columns(one, x, w + n, inner, columns, out + n);
  }
}

void MultiplyFloats(const float* x, const float* w, size_t rows, size_t inner, size_t columns,
                    float* out) {
  Multiply(x, w, rows, inner, columns, out);
}
void MultiplyDoubles(const double* x, const double* w, size_t rows, size_t inner, size_t columns,
                     double* out) {
  Multiply(x, w, rows, inner, columns, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(MultiplyFloats);
HWY_EXPORT(MultiplyDoubles);

void MultiplyMatrix(const float* x, const float* w, size_t rows, size_t inner, size_t columns,
                    float* out) {
  HWY_DYNAMIC_DISPATCH(MultiplyFloats)(x, w, rows, inner, columns, out);
}
void MultiplyMatrix(const double* x, const double* w, size_t rows, size_t inner, size_t columns,
                    double* out) {
  HWY_DYNAMIC_DISPATCH(MultiplyDoubles)(x, w, rows, inner, columns, out);
}

namespace {

template <typename T>
void Twin(const T* x, const T* w, size_t rows, size_t inner, size_t columns, T* out) {
  for (size_t m = 0; m < rows; ++m) {
    for (size_t n = 0; n < columns; ++n) {
      T sum = 0;
      for (size_t k = 0; k < inner; ++k) {
        const T product = x[m * inner + k] * w[k * columns + n];
        sum += product;
      }
      out[m * columns + n] = sum;
    }
  }
}

}  // namespace

void MultiplyMatrixScalar(const float* x, const float* w, size_t rows, size_t inner, size_t columns,
                          float* out) {
  Twin(x, w, rows, inner, columns, out);
}
void MultiplyMatrixScalar(const double* x, const double* w, size_t rows, size_t inner,
                          size_t columns, double* out) {
  Twin(x, w, rows, inner, columns, out);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
