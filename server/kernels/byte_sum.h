// Weighted sums of bytes in integers, rounded and clipped to bytes again: the two passes of a
// resizing as Pillow does it.
//
// A weight is an integer with kByteFractionBits bits behind the point; a sum begins with one half,
// and its fraction is dropped.
//
// Threads:  pure.
// Limits:   weights of a sum add up to at most 2 in size. One byte behind a line of three channels
//           is read, and one behind its result may be overwritten.
// Cost:     rows by vectors; a pixel's term about a nanosecond.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

inline constexpr int kByteFractionBits = 22;

// out[i] = sum of weights[k] * rows[k][i] over k, i < count.
void SumByteRows(const uint8_t* const* rows, const int32_t* weights, size_t num_rows, size_t count,
                 uint8_t* out);

// Which pixels of a line each pixel of the result is made of: counts[x] of them from starts[x] on,
// with weights[x * span] and those behind it.
struct ByteSpans {
  size_t span = 0;
  const int64_t* starts = nullptr;
  const int64_t* counts = nullptr;
  const int32_t* weights = nullptr;
};

// out: width_out pixels of `channels` values.
void SumBytePixels(const uint8_t* line, size_t channels, const ByteSpans& spans, size_t width_out,
                   uint8_t* out);

// The twins, which define the bytes.
void SumByteRowsScalar(const uint8_t* const* rows, const int32_t* weights, size_t num_rows,
                       size_t count, uint8_t* out);
void SumBytePixelsScalar(const uint8_t* line, size_t channels, const ByteSpans& spans,
                         size_t width_out, uint8_t* out);

}  // namespace penstock::kernels
