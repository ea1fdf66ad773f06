#include "server/image/adjust.h"
#include "server/kernels/colour_circle.h"

namespace penstock::expr {

PixelMap SaturationMap(float factor) {
  const auto apply = [factor](const float* in, int64_t num_pixels, int64_t, float* out) {
    kernels::ScaleSaturation(in, static_cast<size_t>(num_pixels), factor, out);
  };
  return {.apply = apply, .channels_in = 3};
}

}  // namespace penstock::expr
