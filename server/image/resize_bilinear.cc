// "bilinear": half-pixel centres, no antialiasing.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "server/image/resize_method.h"
#include "server/kernels/resize.h"

namespace penstock::expr {
namespace {

// A tile of the result ought to stay in L1 until the arithmetic behind it has taken it.
constexpr size_t kTileBytes = 8192;

// The two source rows that an output row lies between, interpolated along the row. A row that the
// next output row needs again is kept.
template <typename T>
class RowPair {
 public:
  RowPair(const kernels::BilinearRow& row, const T* image, float* first, float* second)
      : row_(row), image_(image), top_(first), bottom_(second) {}

  void MoveTo(const kernels::BilinearTap& tap) {
    if (tap.lower != top_index_) {
      if (tap.lower == bottom_index_) {
        std::swap(top_, bottom_);
        std::swap(top_index_, bottom_index_);
      } else {
        Fill(tap.lower, top_);
        top_index_ = tap.lower;
      }
    }
    if (tap.upper == tap.lower) return;
    if (tap.upper != bottom_index_) {
      Fill(tap.upper, bottom_);
      bottom_index_ = tap.upper;
    }
  }

  const float* top() const { return top_; }
  const float* bottom(const kernels::BilinearTap& tap) const {
    return tap.upper == tap.lower ? top_ : bottom_;
  }

 private:
  void Fill(int32_t index, float* out) const {
    kernels::ResizeRow(row_, image_ + index * row_.width_in * row_.channels, out);
  }

  const kernels::BilinearRow& row_;
  const T* const image_;
  float* top_;
  float* bottom_;
  int32_t top_index_ = -1;
  int32_t bottom_index_ = -1;
};

// Writes the window of what is resized to `full_height` x `full_width` pixels. It has pixels and lies inside.
template <typename T>
void RunTyped(const T* image, const Shape& shape, int64_t full_height, int64_t full_width,
              const Window& window, Arena& scratch, RowOutput& out) {
  const int64_t height = window.height, width = window.width;
  const int channels = static_cast<int>(shape[2]);
  const kernels::BilinearRow row = kernels::MakeBilinearRowPart(
      shape[1], full_width, window.left, width, channels, out.TakeMirrored(),
      scratch.Allocate(kernels::BilinearRowBytes(width, channels)));
  auto* const taps = scratch.AllocateArray<kernels::BilinearTap>(height);
  kernels::MakeBilinearTaps(shape[0], full_height, window.top, height, taps);
  const size_t row_values = width * channels;
  // ResizeRow() writes whole blocks beyond the row.
  const size_t buffer_values = row_values + kernels::kBilinearPadding / sizeof(float);
  RowPair<T> rows(row, image, scratch.AllocateArray<float>(buffer_values),
                  scratch.AllocateArray<float>(buffer_values));
  // A tile is either some whole rows or a part of one.
  const size_t tile_values = kTileBytes / sizeof(float);
  const int64_t tile_rows = std::max<int64_t>(tile_values / row_values, 1);
  for (int64_t y = 0; y < height;) {
    if (tile_rows > 1) {
      const int64_t count = std::min(tile_rows, height - y);
      auto* tile = reinterpret_cast<float*>(out.Reserve(count * row_values * sizeof(float)));
      for (int64_t i = 0; i < count; ++i, ++y, tile += row_values) {
        rows.MoveTo(taps[y]);
        kernels::LerpRows(rows.top(), rows.bottom(taps[y]), taps[y].lerp, row_values, tile);
      }
      out.Commit();
      continue;
    }
    rows.MoveTo(taps[y]);
    const float* const top = rows.top();
    const float* const bottom = rows.bottom(taps[y]);
    for (size_t start = 0; start < row_values; start += tile_values) {
      const size_t count = std::min(tile_values, row_values - start);
      auto* const tile = reinterpret_cast<float*>(out.Reserve(count * sizeof(float)));
      kernels::LerpRows(top + start, bottom + start, taps[y].lerp, count, tile);
      out.Commit();
    }
    ++y;
  }
}

}  // namespace

void ResizeBilinearWindow(DType dtype, const RowValue& image, int64_t height, int64_t width,
                          const Window& window, Arena& scratch, RowOutput& out) {
  if (dtype == DType::kUint8) {
    RunTyped(image.data, image.shape, height, width, window, scratch, out);
  } else {
    RunTyped(reinterpret_cast<const float*>(image.data), image.shape, height, width, window,
             scratch, out);
  }
}

void ResizeBilinear(DType dtype, const RowValue& image, int64_t height, int64_t width,
                    Arena& scratch, RowOutput& out) {
  ResizeBilinearWindow(dtype, image, height, width, {0, 0, height, width}, scratch, out);
}

}  // namespace penstock::expr
