// What turns an RGB image around the circle of colours, or towards its grey, by TensorFlow's
// arithmetic (adjust_hue_op.cc and adjust_saturation_op.cc): its bits, on every instruction set.
//
// Threads:  pure.
// Limits:   `in` and `out` are 3 * num_pixels values, and may be the same; nothing behind them is
//           touched.
// Cost:     about 1 ns a pixel with AVX-512, 5 with SSE4.
#pragma once

#include <cstddef>

namespace penstock::kernels {

// The hue, in sixths of the circle from 0 to 6, plus `sixths`, which are from -6 to 6; least and
// greatest colour stay.
void TurnHue(const float* in, size_t num_pixels, float sixths, float* out);

// The saturation (greatest less least colour, over the greatest) times `factor`, from 0 to 1.
void ScaleSaturation(const float* in, size_t num_pixels, float factor, float* out);

}  // namespace penstock::kernels
