// "nearest": each pixel is a copy of the one that its centre lies in.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "server/image/resize_method.h"

namespace penstock::expr {
namespace {

int64_t Nearest(int64_t to, float scale, int64_t size) {
  const auto from = static_cast<int64_t>(std::floor((static_cast<float>(to) + 0.5f) * scale));
  return std::clamp<int64_t>(from, 0, size - 1);
}

}  // namespace

void ResizeNearest(DType dtype, const RowValue& image, int64_t height, int64_t width,
                   Arena& scratch, RowOutput& out) {
  const int64_t rows = image.shape[0], columns = image.shape[1];
  const auto pixel_bytes = static_cast<size_t>(image.shape[2]) * DTypeSize(dtype);
  const float row_scale = static_cast<float>(rows) / static_cast<float>(height);
  const float column_scale = static_cast<float>(columns) / static_cast<float>(width);
  auto* const offsets = scratch.AllocateArray<size_t>(static_cast<size_t>(width));
  for (int64_t x = 0; x < width; ++x) {
    offsets[x] = static_cast<size_t>(Nearest(x, column_scale, columns)) * pixel_bytes;
  }
  const size_t row_bytes = static_cast<size_t>(width) * pixel_bytes;
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* const from =
        image.data + static_cast<size_t>(Nearest(y, row_scale, rows) * columns) * pixel_bytes;
    uint8_t* to = out.Reserve(row_bytes);
    for (int64_t x = 0; x < width; ++x, to += pixel_bytes) {
      std::memcpy(to, from + offsets[x], pixel_bytes);
    }
    out.Commit();
  }
}

}  // namespace penstock::expr
