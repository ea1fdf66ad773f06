// What Pillow does to bytes: between bytes and beyond them, from a value, an image's greys or its
// smoothed form; inverted, and masked.
//
// Threads:  pure.
// Limits:   any number of values, at any alignment; none outside of them is touched.
// Cost:     by vectors, some 4 bytes a nanosecond.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

// out[i] = from[i] + factor * (to[i] - from[i]) in float32, clipped to 0..255, its fraction
// dropped: Image.blend of Pillow. `out` may be `from` or `to`.
void BlendBytes(const uint8_t* from, const uint8_t* to, size_t count, float factor, uint8_t* out);

// The same from one value.
void BlendFrom(uint8_t from, const uint8_t* to, size_t count, float factor, uint8_t* out);

// The same of pixels of three channels, whose `from` is their grey.
void BlendWithGrey(const uint8_t* pixels, size_t num_pixels, float factor, uint8_t* out);

// The grey of a pixel of three channels, (19595 r + 38470 g + 7471 b + 2^15) / 2^16: convert("L")
// of Pillow, which is ITU-R 601's. The sum of those of all pixels.
uint64_t SumOfGreys(const uint8_t* pixels, size_t num_pixels);

// Each value with its eight neighbours, itself five times, divided by 13 and rounded:
// ImageFilter.SMOOTH of Pillow. `above`, `row` and `below`: `count` values; what stands `channels`
// before the first and behind the last is read.
void SmoothBytes(const uint8_t* above, const uint8_t* row, const uint8_t* below, size_t count,
                 size_t channels, uint8_t* out);

// 255 minus each value of at least `threshold`, the others as they are.
void InvertBytes(const uint8_t* in, size_t count, uint8_t threshold, uint8_t* out);
// in[i] & mask.
void MaskBytes(const uint8_t* in, size_t count, uint8_t mask, uint8_t* out);

// The twins, which define the bytes.
void BlendBytesScalar(const uint8_t* from, const uint8_t* to, size_t count, float factor,
                      uint8_t* out);
void BlendFromScalar(uint8_t from, const uint8_t* to, size_t count, float factor, uint8_t* out);
void BlendWithGreyScalar(const uint8_t* pixels, size_t num_pixels, float factor, uint8_t* out);
uint64_t SumOfGreysScalar(const uint8_t* pixels, size_t num_pixels);
void SmoothBytesScalar(const uint8_t* above, const uint8_t* row, const uint8_t* below, size_t count,
                       size_t channels, uint8_t* out);
void InvertBytesScalar(const uint8_t* in, size_t count, uint8_t threshold, uint8_t* out);
void MaskBytesScalar(const uint8_t* in, size_t count, uint8_t mask, uint8_t* out);

}  // namespace penstock::kernels
