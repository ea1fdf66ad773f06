#include "server/kernels/weighted_sum.h"

#include <algorithm>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/weighted_sum.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE void SumAt(D d, const float* const* rows, const float* weights, size_t num_rows,
                      size_t i, float first, float* out) {
  auto sum = hn::Set(d, first);
  for (size_t k = 0; k < num_rows; ++k)
    sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[k]), hn::LoadU(d, rows[k] + i)));
  hn::StoreU(sum, d, out + i);
}

void SumRows(const float* const* rows, const float* weights, size_t num_rows, size_t count,
             float first, float* out) {
  const hn::ScalableTag<float> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  size_t i = 0;
  // Four sums at a time do not wait for each other.
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    auto sum0 = hn::Set(d, first), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    for (size_t k = 0; k < num_rows; ++k) {
      const auto weight = hn::Set(d, weights[k]);
      const float* const from = rows[k] + i;
      sum0 = hn::Add(sum0, hn::Mul(weight, hn::LoadU(d, from)));
      sum1 = hn::Add(sum1, hn::Mul(weight, hn::LoadU(d, from + kLanes)));
      sum2 = hn::Add(sum2, hn::Mul(weight, hn::LoadU(d, from + 2 * kLanes)));
      sum3 = hn::Add(sum3, hn::Mul(weight, hn::LoadU(d, from + 3 * kLanes)));
    }
    hn::StoreU(sum0, d, out + i);
    hn::StoreU(sum1, d, out + i + kLanes);
    hn::StoreU(sum2, d, out + i + 2 * kLanes);
    hn::StoreU(sum3, d, out + i + 3 * kLanes);
  }
  for (; i + kLanes <= count; i += kLanes) SumAt(d, rows, weights, num_rows, i, first, out);
  for (; i < count; ++i) SumAt(hn::CappedTag<float, 1>(), rows, weights, num_rows, i, first, out);
}

void SumPixels(const float* line, size_t width_in, size_t channels, const PixelSpans& spans,
               size_t width_out, float first, float* out) {
  // Four channels at a time. What is stored beyond a pixel's own is the next one's, which comes
  // later.
  const hn::CappedTag<float, kPixelPadding> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const float* const end = out + width_out * channels;
  for (size_t x = 0; x < width_out; ++x, out += channels) {
    const auto start = static_cast<size_t>(spans.starts[x]);
    const size_t count = spans.counts != nullptr ? static_cast<size_t>(spans.counts[x])
                                                 : std::min(spans.span, width_in - start);
    const float* const weights = spans.weights + x * spans.span;
    for (size_t c = 0; c < channels; c += kLanes) {
      const float* pixel = line + start * channels + c;
      auto sum = hn::Set(d, first);
      for (size_t k = 0; k < count; ++k, pixel += channels)
        sum = hn::Add(sum, hn::Mul(hn::Set(d, weights[k]), hn::LoadU(d, pixel)));
      if (out + c + kLanes <= end) {
        hn::StoreU(sum, d, out + c);
      } else {
        HWY_ALIGN float last[kLanes];
        hn::Store(sum, d, last);
        std::copy_n(last, std::min<size_t>(kLanes, end - out - c), out + c);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(SumRows);
HWY_EXPORT(SumPixels);

void SumRows(const float* const* rows, const float* weights, size_t num_rows, size_t count,
             float first, float* out) {
  HWY_DYNAMIC_DISPATCH(SumRows)(rows, weights, num_rows, count, first, out);
}
void SumPixels(const float* line, size_t width_in, size_t channels, const PixelSpans& spans,
               size_t width_out, float first, float* out) {
  HWY_DYNAMIC_DISPATCH(SumPixels)(line, width_in, channels, spans, width_out, first, out);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
