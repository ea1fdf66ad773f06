// Weighted sums of rows and of pixels: the two passes of a resizing that weighs several pixels.
//
// Products are rounded before they are added, in order, to a first value: 0, or -0, which leaves
// each first product as it is. The bits are the same on every instruction set.
//
// Threads:  pure.
// Limits:   kPixelPadding floats may be read behind a line of pixels; nothing is written behind
//           what is said.
// Cost:     rows by vectors, as fast as the caches give them; a pixel's term about a nanosecond.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

inline constexpr size_t kPixelPadding = 4;

// out[i] = first + sum of weights[k] * rows[k][i] over k, i < count.
void SumRows(const float* const* rows, const float* weights, size_t num_rows, size_t count,
             float first, float* out);

// Which pixels of a line each pixel of the result is made of: those from starts[x] on with
// weights[x * span], weights[x * span + 1] …, as many of `span` as counts[x] says or, without
// counts, the line of `width_in` pixels has.
struct PixelSpans {
  size_t span = 0;
  const int64_t* starts = nullptr;
  const float* weights = nullptr;
  const int64_t* counts = nullptr;
};

// out: width_out pixels of `channels` values.
void SumPixels(const float* line, size_t width_in, size_t channels, const PixelSpans& spans,
               size_t width_out, float first, float* out);

}  // namespace penstock::kernels
