// Maps that look at one value at a time.
#include <algorithm>

#include "server/image/adjust.h"
#include "server/kernels/image_arithmetic.h"

namespace penstock::expr {

PixelMap BrightnessMap(float delta) {
  return {
      .apply = [delta](const float* in, int64_t num_pixels, int64_t channels,
                       float* out) { kernels::AddToAll(in, num_pixels * channels, delta, out); },
      .by_value = true};
}

PixelMap GammaMap(float gamma, float gain) {
  return {.apply =
              [gamma, gain](const float* in, int64_t num_pixels, int64_t channels, float* out) {
                kernels::PowerOfAll(in, num_pixels * channels, gamma, gain, out);
              },
          .by_value = true};
}

ByteTable TableOf(const PixelMap& map) {
  ByteTable table;
  std::array<float, 256> values;
  for (int i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i);
  PixelsToFloat(DType::kUint8, table.data(), table.size(), values.data());
  map.apply(values.data(), 256, 1, values.data());
  FloatToPixels(DType::kUint8, values.data(), values.size(), table.data());
  return table;
}

void RunTable(const ByteTable& table, const RowValue& image, RowOutput& out) {
  constexpr size_t kTileBytes = 4096;
  for (size_t start = 0; start < image.bytes; start += kTileBytes) {
    const size_t count = std::min(kTileBytes, image.bytes - start);
    uint8_t* const to = out.Reserve(count);
    for (size_t i = 0; i < count; ++i) to[i] = table[image.data[start + i]];
    out.Commit();
  }
}

}  // namespace penstock::expr
