#include "server/kernels/byte_sum.h"

#include <algorithm>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/byte_sum.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

constexpr int32_t kHalf = 1 << (kByteFractionBits - 1);

template <class D>
HWY_INLINE hn::Vec<D> AddTerm(D d, hn::Vec<D> sum, const uint8_t* from, hn::Vec<D> weight) {
  const hn::Rebind<uint8_t, D> bytes;
  return hn::Add(sum, hn::Mul(hn::PromoteTo(d, hn::LoadU(bytes, from)), weight));
}

// Clipped.
template <class D>
HWY_INLINE void StoreSum(D, hn::Vec<D> sum, uint8_t* to) {
  const hn::Rebind<uint8_t, D> bytes;
  hn::StoreU(hn::DemoteTo(bytes, hn::ShiftRight<kByteFractionBits>(sum)), bytes, to);
}

void SumRows(const uint8_t* const* rows, const int32_t* weights, size_t num_rows, size_t count,
             uint8_t* out) {
  const hn::ScalableTag<int32_t> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto half = hn::Set(d, kHalf);
  size_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    auto sum0 = half, sum1 = half, sum2 = half, sum3 = half;
    for (size_t k = 0; k < num_rows; ++k) {
      const auto weight = hn::Set(d, weights[k]);
      const uint8_t* const from = rows[k] + i;
      sum0 = AddTerm(d, sum0, from, weight);
      sum1 = AddTerm(d, sum1, from + kLanes, weight);
      sum2 = AddTerm(d, sum2, from + 2 * kLanes, weight);
      sum3 = AddTerm(d, sum3, from + 3 * kLanes, weight);
    }
    StoreSum(d, sum0, out + i);
    StoreSum(d, sum1, out + i + kLanes);
    StoreSum(d, sum2, out + i + 2 * kLanes);
    StoreSum(d, sum3, out + i + 3 * kLanes);
  }
  for (; i + kLanes <= count; i += kLanes) {
    auto sum = half;
    for (size_t k = 0; k < num_rows; ++k)
      sum = AddTerm(d, sum, rows[k] + i, hn::Set(d, weights[k]));
    StoreSum(d, sum, out + i);
  }
  for (; i < count; ++i) {
    int32_t total = kHalf;
    for (size_t k = 0; k < num_rows; ++k) total += rows[k][i] * weights[k];
    out[i] = static_cast<uint8_t>(std::clamp(total >> kByteFractionBits, 0, 255));
  }
}

// The channels of a pixel side by side; of three, the next one's first is summed with them.
void SumPixels(const uint8_t* line, size_t channels, const ByteSpans& spans, size_t width_out,
               uint8_t* out) {
  const hn::FixedTag<int32_t, 4> d;
  const int32_t* weights = spans.weights;
  for (size_t x = 0; x < width_out; ++x, weights += spans.span, out += channels) {
    const uint8_t* from = line + static_cast<size_t>(spans.starts[x]) * channels;
    auto sum = hn::Set(d, kHalf);
    for (int64_t k = 0; k < spans.counts[x]; ++k, from += channels)
      sum = AddTerm(d, sum, from, hn::Set(d, weights[k]));
    StoreSum(d, sum, out);
  }
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {
namespace {

uint8_t Finished(int32_t total) {
  return static_cast<uint8_t>(std::clamp(total >> kByteFractionBits, 0, 255));
}

}  // namespace

HWY_EXPORT(SumRows);
HWY_EXPORT(SumPixels);

void SumByteRows(const uint8_t* const* rows, const int32_t* weights, size_t num_rows, size_t count,
                 uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SumRows)(rows, weights, num_rows, count, out);
}

void SumBytePixels(const uint8_t* line, size_t channels, const ByteSpans& spans, size_t width_out,
                   uint8_t* out) {
  if (channels == 3 || channels == 4) {
    HWY_DYNAMIC_DISPATCH(SumPixels)(line, channels, spans, width_out, out);
  } else {
    SumBytePixelsScalar(line, channels, spans, width_out, out);
  }
}

void SumByteRowsScalar(const uint8_t* const* rows, const int32_t* weights, size_t num_rows,
                       size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    int32_t total = 1 << (kByteFractionBits - 1);
    for (size_t k = 0; k < num_rows; ++k) total += rows[k][i] * weights[k];
    out[i] = Finished(total);
  }
}

void SumBytePixelsScalar(const uint8_t* line, size_t channels, const ByteSpans& spans,
                         size_t width_out, uint8_t* out) {
  const int32_t* weights = spans.weights;
  for (size_t x = 0; x < width_out; ++x, weights += spans.span) {
    const uint8_t* const first = line + static_cast<size_t>(spans.starts[x]) * channels;
    for (size_t c = 0; c < channels; ++c) {
      int32_t total = 1 << (kByteFractionBits - 1);
      for (int64_t k = 0; k < spans.counts[x]; ++k)
        total += first[static_cast<size_t>(k) * channels + c] * weights[k];
      *out++ = Finished(total);
    }
  }
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
