// Functions that change each pixel by itself, computed in float32 as TensorFlow does: integers
// become 0..1 by the product with float32(1 / greatest), and come back by the product with greatest
// + 0.5, clipped, its fraction dropped.
//
// Threads:  safe from any thread.
// Limits:   uint8, int8, uint16, int16 and float32. NaN becomes 0 as an integer.
// Cost:     one pass over tiles of about 4 KiB.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "server/expr/function.h"

namespace penstock::expr {

// An image of the dtypes above. `channels`: how many it must have, 0 for any; one whose channels
// only the data tells is checked row by row.
absl::Status CheckPixels(const Argument& image, int64_t channels = 0);
absl::Status CheckChannels(const RowValue& image, int64_t channels);

void PixelsToFloat(DType dtype, const uint8_t* in, size_t count, float* out);
void FloatToPixels(DType dtype, const float* in, size_t count, uint8_t* out);

// Computes `num_pixels` pixels of `out` from as many of `in`, which may be the same memory.
using PixelFunction =
    std::function<void(const float* in, int64_t num_pixels, int64_t channels, float* out)>;

struct PixelMap {
  PixelFunction apply;
  int64_t channels_in = 0;   // 0: any
  int64_t channels_out = 0;  // 0: as many as it is given
  bool by_value = false;     // looks at one value at a time
};

// Writes what `map` makes of one image of `dtype`, whose shape has been set.
void RunPixels(const PixelMap& map, DType dtype, const RowValue& image, Arena& scratch,
               RowOutput& out);

// The same of an image that comes in tiles. REQUIRES: `map` is by_value.
std::unique_ptr<TileFilter> NewValueFilter(PixelMap map, DType dtype, Arena& scratch,
                                           RowOutput& out);

// The call of a function whose result has the image's dtype.
BoundRowFunction BindPixels(const TensorType& image, PixelMap map);

}  // namespace penstock::expr
