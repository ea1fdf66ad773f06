#include "server/image/adjust.h"
#include "server/kernels/colour_circle.h"

namespace penstock::expr {

PixelMap HueMap(float delta) {
  const auto apply = [sixths = delta * 6](const float* in, int64_t num_pixels, int64_t,
                                          float* out) {
    kernels::TurnHue(in, static_cast<size_t>(num_pixels), sixths, out);
  };
  return {.apply = apply, .channels_in = 3};
}

}  // namespace penstock::expr
