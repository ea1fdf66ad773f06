// What adjusting the colours of an image does to many float32 at once.
//
// Threads:  pure.
// Limits:   any number of values, at any alignment; none outside of them is touched.
// Cost:     by vectors, as fast as memory gives the values.
#pragma once

#include <cstddef>

namespace penstock::kernels {

// out[i] = in[i] + value. `out` may be `in`.
void AddToAll(const float* in, size_t count, float value, float* out);

// out[i] = factor * in[i] ** exponent. `out` may be `in`.
void PowerOfAll(const float* in, size_t count, float exponent, float factor, float* out);

// out[i] = first[i] + second[i]. `out` may be `first`.
void AddPairs(const float* first, const float* second, size_t count, float* out);

// out[i] = (in[i] + in[i + 2 count]) + (in[i + count] + in[i + 3 count]). `out` may be `in`.
void AddQuarters(const float* in, size_t count, float* out);

// out[i] = c + factor * (in[i] - c), c = centres[i % period]. `out` may be `in`; the centres go on
// by their period for kCentrePadding values more.
inline constexpr size_t kCentrePadding = 16;
void StretchAround(const float* in, size_t count, const float* centres, size_t period, float factor,
                   float* out);

}  // namespace penstock::kernels
