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

// How many rows of an image that is made while it is resized are there at a time.
constexpr int64_t kRowsAtOnce = 8;

// The rows of an image that lies in memory.
template <typename T>
class RowsInMemory {
 public:
  RowsInMemory(const T* image, const Shape& shape)
      : image_(image), row_values_(shape[1] * shape[2]) {}
  const T* Row(int64_t index) const { return image_ + index * row_values_; }

 private:
  const T* const image_;
  const int64_t row_values_;
};

// The rows of an image as a reader gives them. They are asked for from top to bottom.
class RowsOfReader {
 public:
  RowsOfReader(PartReader& reader, const Shape& shape, Arena& scratch)
      : reader_(reader),
        height_(shape[0]),
        row_bytes_(shape[1] * shape[2]),
        // libjpeg-turbo writes rows that begin on a vector past the caches, but by a way round
        // (codec/jpeg.cc).
        rows_(scratch.Allocate(kUnaligned + kRowsAtOnce * row_bytes_) + kUnaligned) {}

  // Of any bytes behind an error.
  const uint8_t* Row(int64_t index) {
    while (index >= end_ && status_.ok()) ReadMore();
    return status_.ok() ? rows_ + (index - first_) * row_bytes_ : rows_;
  }

  // What is left is read, too: whether it can be is a matter of the image.
  absl::Status Finish() {
    while (end_ < height_ && status_.ok()) ReadMore();
    return status_;
  }

 private:
  static constexpr int64_t kUnaligned = 4;

  void ReadMore() {
    first_ = end_;
    const int64_t count = std::min(kRowsAtOnce, height_ - first_);
    status_ = reader_.ReadRows(count, rows_);
    end_ += count;
  }

  PartReader& reader_;
  const int64_t height_;
  const int64_t row_bytes_;
  uint8_t* const rows_;  // those of [first_, end_)
  int64_t first_ = 0;
  int64_t end_ = 0;
  absl::Status status_;
};

// The two source rows that an output row lies between, interpolated along the row. A row that the
// next output row needs again is kept.
template <typename Rows>
class RowPair {
 public:
  RowPair(const kernels::BilinearRow& row, Rows& rows, float* first, float* second)
      : row_(row), rows_(rows), top_(first), bottom_(second) {}

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
  void Fill(int32_t index, float* out) { kernels::ResizeRow(row_, rows_.Row(index), out); }

  const kernels::BilinearRow& row_;
  Rows& rows_;
  float* top_;
  float* bottom_;
  int32_t top_index_ = -1;
  int32_t bottom_index_ = -1;
};

// Writes the window of what is resized to `full_height` x `full_width` pixels. It has pixels and
// lies inside.
template <typename Rows>
void RunOnRows(Rows& image, const Shape& shape, int64_t full_height, int64_t full_width,
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
  RowPair<Rows> rows(row, image, scratch.AllocateArray<float>(buffer_values),
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
    RowsInMemory<uint8_t> rows(image.data, image.shape);
    RunOnRows(rows, image.shape, height, width, window, scratch, out);
  } else {
    RowsInMemory<float> rows(reinterpret_cast<const float*>(image.data), image.shape);
    RunOnRows(rows, image.shape, height, width, window, scratch, out);
  }
}

absl::Status ResizeBilinearRead(PartReader& reader, const Shape& image, int64_t height,
                                int64_t width, Arena& scratch, RowOutput& out) {
  const Window window{0, 0, height, width};
  if (reader.has_rows()) {
    RowsOfReader rows(reader, image, scratch);
    RunOnRows(rows, image, height, width, window, scratch, out);
    return rows.Finish();
  }
  const size_t bytes = image[0] * image[1] * image[2];
  uint8_t* const pixels = scratch.Allocate(bytes);
  if (absl::Status status = reader.Read(0, 0, image[0], image[1], pixels); !status.ok())
    return status;
  RowsInMemory<uint8_t> rows(pixels, image);
  RunOnRows(rows, image, height, width, window, scratch, out);
  return absl::OkStatus();
}

void ResizeBilinear(DType dtype, const RowValue& image, int64_t height, int64_t width,
                    Arena& scratch, RowOutput& out) {
  ResizeBilinearWindow(dtype, image, height, width, {0, 0, height, width}, scratch, out);
}

}  // namespace penstock::expr
