#include "server/kernels/reduce.h"

#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/reduce.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

#ifndef PENSTOCK_REDUCE_TWIN_
#define PENSTOCK_REDUCE_TWIN_
namespace penstock::kernels {

// What is left of whole rounds, and the end of the tree.
template <bool kSquares, typename T>
double FinishSum(double* lanes, const T* rest, size_t count, double center) {
  for (size_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(rest[i]);
    lanes[i] += kSquares ? (value - center) * (value - center) : value;
  }
  for (size_t half = kSumLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

}  // namespace penstock::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D, typename T>
HWY_INLINE hn::Vec<D> LoadDoubles(D d, const T* p) {
  if constexpr (sizeof(T) == sizeof(double)) {
    return hn::LoadU(d, p);
  } else {
    return hn::PromoteTo(d, hn::LoadU(hn::Rebind<T, D>(), p));
  }
}

template <bool kSquares, typename T>
double SumOf(const T* HWY_RESTRICT values, size_t count, double center) {
  const hn::ScalableTag<double> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  // Four vectors at a time wait for no sum of their own; the lanes in memory are each round's only
  // once.
  constexpr size_t kVectors = kSumLanes / kLanes;
  HWY_ALIGN double lanes[kSumLanes] = {};
  const auto middle = hn::Set(d, center);
  const size_t rounds = count / kSumLanes;
  constexpr size_t kTogether = kVectors < 4 ? kVectors : 4;
  for (size_t first = 0; first < kVectors; first += kTogether) {
    auto sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    const T* p = values + first * kLanes;
    const auto add = [&](auto& sum, size_t k) HWY_ATTR {
      auto value = LoadDoubles(d, p + k * kLanes);
      if constexpr (kSquares) {
        value = hn::Sub(value, middle);
        value = hn::Mul(value, value);
      }
      sum = hn::Add(sum, value);
    };
    for (size_t round = 0; round < rounds; ++round, p += kSumLanes) {
      add(sum0, 0);
      add(sum1, 1);
      add(sum2, 2);
      add(sum3, 3);
    }
    hn::Store(sum0, d, lanes + first * kLanes);
    hn::Store(sum1, d, lanes + (first + 1) * kLanes);
    hn::Store(sum2, d, lanes + (first + 2) * kLanes);
    hn::Store(sum3, d, lanes + (first + 3) * kLanes);
  }
  return FinishSum<kSquares>(lanes, values + rounds * kSumLanes, count % kSumLanes, center);
}

// The columns from `first` on: kVectors vectors of them.
template <bool kSquares, int kVectors, class D, typename T>
HWY_INLINE void SumColumnsAt(D d, const T* in, size_t rows, size_t columns, size_t first,
                             const double* centres, double* totals) {
  constexpr size_t kLanes = hn::MaxLanes(d);
  hn::Vec<D> sums[kVectors], middles[kVectors];
  for (int v = 0; v < kVectors; ++v) {
    sums[v] = hn::Zero(d);
    middles[v] = kSquares ? hn::LoadU(d, centres + first + v * kLanes) : hn::Zero(d);
  }
  const T* p = in + first;
  for (size_t row = 0; row < rows; ++row, p += columns) {
    for (int v = 0; v < kVectors; ++v) {
      auto value = LoadDoubles(d, p + v * kLanes);
      if constexpr (kSquares) {
        value = hn::Sub(value, middles[v]);
        value = hn::Mul(value, value);
      }
      sums[v] = hn::Add(sums[v], value);
    }
  }
  for (int v = 0; v < kVectors; ++v) hn::StoreU(sums[v], d, totals + first + v * kLanes);
}

template <bool kSquares, typename T>
void SumAllColumns(const T* in, size_t rows, size_t columns, const double* centres,
                   double* totals) {
  const hn::ScalableTag<double> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t c = 0;
  for (; c + 4 * kLanes <= columns; c += 4 * kLanes)
    SumColumnsAt<kSquares, 4>(d, in, rows, columns, c, centres, totals);
  for (; c + kLanes <= columns; c += kLanes)
    SumColumnsAt<kSquares, 1>(d, in, rows, columns, c, centres, totals);
  for (; c < columns; ++c)
    SumColumnsAt<kSquares, 1>(hn::CappedTag<double, 1>(), in, rows, columns, c, centres, totals);
}

template <typename T>
void SumColumnsOf(const T* in, size_t rows, size_t columns, const double* centres, double* totals) {
  if (centres == nullptr) return SumAllColumns<false>(in, rows, columns, centres, totals);
  SumAllColumns<true>(in, rows, columns, centres, totals);
}
void SumFloatColumns(const float* in, size_t rows, size_t columns, const double* centres,
                     double* totals) {
  SumColumnsOf(in, rows, columns, centres, totals);
}
void SumDoubleColumns(const double* in, size_t rows, size_t columns, const double* centres,
                      double* totals) {
  SumColumnsOf(in, rows, columns, centres, totals);
}

double SumFloats(const float* values, size_t count) { return SumOf<false>(values, count, 0); }
double SumDoubles(const double* values, size_t count) { return SumOf<false>(values, count, 0); }
double SumFloatSquares(const float* values, size_t count, double center) {
  return SumOf<true>(values, count, center);
}
double SumDoubleSquares(const double* values, size_t count, double center) {
  return SumOf<true>(values, count, center);
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(SumFloatColumns);
HWY_EXPORT(SumDoubleColumns);
HWY_EXPORT(SumFloats);
HWY_EXPORT(SumDoubles);
HWY_EXPORT(SumFloatSquares);
HWY_EXPORT(SumDoubleSquares);

void SumColumns(const float* in, size_t rows, size_t columns, const double* centres,
                double* totals) {
  HWY_DYNAMIC_DISPATCH(SumFloatColumns)(in, rows, columns, centres, totals);
}
void SumColumns(const double* in, size_t rows, size_t columns, const double* centres,
                double* totals) {
  HWY_DYNAMIC_DISPATCH(SumDoubleColumns)(in, rows, columns, centres, totals);
}

double Sum(const float* values, size_t count) {
  return HWY_DYNAMIC_DISPATCH(SumFloats)(values, count);
}
double Sum(const double* values, size_t count) {
  return HWY_DYNAMIC_DISPATCH(SumDoubles)(values, count);
}
double SumOfSquares(const float* values, size_t count, double center) {
  return HWY_DYNAMIC_DISPATCH(SumFloatSquares)(values, count, center);
}
double SumOfSquares(const double* values, size_t count, double center) {
  return HWY_DYNAMIC_DISPATCH(SumDoubleSquares)(values, count, center);
}

namespace {

template <bool kSquares, typename T>
double Twin(const T* values, size_t count, double center) {
  double lanes[kSumLanes] = {};
  for (size_t i = 0; i < count; ++i) {
    const double value = static_cast<double>(values[i]);
    lanes[i % kSumLanes] += kSquares ? (value - center) * (value - center) : value;
  }
  return FinishSum<kSquares, T>(lanes, nullptr, 0, center);
}

}  // namespace

double SumScalar(const float* values, size_t count) { return Twin<false>(values, count, 0); }
double SumScalar(const double* values, size_t count) { return Twin<false>(values, count, 0); }
double SumOfSquaresScalar(const float* values, size_t count, double center) {
  return Twin<true>(values, count, center);
}
double SumOfSquaresScalar(const double* values, size_t count, double center) {
  return Twin<true>(values, count, center);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
