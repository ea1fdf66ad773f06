#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/expr/function.h"
#include "server/expr/row_kernel.h"
#include "server/kernels/resize.h"

namespace penstock::expr {
namespace {

// A tile of the result ought to stay in L1 until the arithmetic behind it has taken it.
constexpr size_t kTileBytes = 4096;

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

class Resize final : public RowKernel {
 public:
  Resize(int64_t height, int64_t width, bool sets_shape, DType dtype)
      : height_(height), width_(width), sets_shape_(sets_shape), dtype_(dtype) {}

  absl::Status Run(absl::Span<const RowValue> arguments, Arena& scratch,
                   RowOutput& out) const override {
    const RowValue& image = arguments[0];
    const Shape& shape = image.shape;
    if (shape[0] < 1 || shape[1] < 1 || shape[2] < 1) {
      return absl::DataLossError(
          absl::StrCat("image without pixels: ", TypeToString({dtype_, shape})));
    }
    if (sets_shape_) out.SetShape({height_, width_, shape[2]});
    if (dtype_ == DType::kUint8) {
      RunTyped(image.data, shape, scratch, out);
    } else {
      RunTyped(reinterpret_cast<const float*>(image.data), shape, scratch, out);
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  void RunTyped(const T* image, const Shape& shape, Arena& scratch, RowOutput& out) const {
    const int channels = static_cast<int>(shape[2]);
    const kernels::BilinearRow row = kernels::MakeBilinearRow(
        shape[1], width_, channels, scratch.Allocate(kernels::BilinearRowBytes(width_, channels)));
    auto* const taps = scratch.AllocateArray<kernels::BilinearTap>(height_);
    kernels::MakeBilinearTaps(shape[0], height_, taps);
    const size_t row_values = width_ * channels;
    // ResizeRow() writes whole blocks beyond the row.
    const size_t buffer_values = row_values + kernels::kBilinearPadding / sizeof(float);
    RowPair<T> rows(row, image, scratch.AllocateArray<float>(buffer_values),
                    scratch.AllocateArray<float>(buffer_values));
    // A tile is either some whole rows or a part of one.
    const size_t tile_values = kTileBytes / sizeof(float);
    const int64_t tile_rows = std::max<int64_t>(tile_values / row_values, 1);
    for (int64_t y = 0; y < height_;) {
      if (tile_rows > 1) {
        const int64_t count = std::min(tile_rows, height_ - y);
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

  const int64_t height_;
  const int64_t width_;
  const bool sets_shape_;
  const DType dtype_;
};

absl::StatusOr<BoundRowFunction> Bind(absl::Span<const Argument> arguments) {
  const TensorType& image = arguments[0].type;
  if (image.shape.size() != 3 || (image.dtype != DType::kUint8 && image.dtype != DType::kFloat32)) {
    return absl::InvalidArgumentError(
        absl::StrCat("image: expected uint8 or float32 of shape (height, width, channels), found ",
                     TypeToString(image)));
  }
  constexpr int64_t kSideMax = 1 << 20;
  const auto* const size = arguments[1].literal == nullptr
                               ? nullptr
                               : std::get_if<std::vector<int64_t>>(arguments[1].literal);
  if (size == nullptr || size->size() != 2 || (*size)[0] < 1 || (*size)[1] < 1 ||
      (*size)[0] > kSideMax || (*size)[1] > kSideMax) {
    return absl::InvalidArgumentError(
        "size: expected a list of two positive constants, [height, width]");
  }
  if (arguments[2].given) {
    const auto* const method =
        arguments[2].literal == nullptr ? nullptr : std::get_if<std::string>(arguments[2].literal);
    if (method == nullptr || *method != "bilinear") {
      return absl::InvalidArgumentError(
          absl::StrCat("method: expected \"bilinear\", the only one that is built, found ",
                       method == nullptr ? "no text" : absl::StrCat("\"", *method, "\"")));
    }
  }
  const int64_t height = (*size)[0], width = (*size)[1], channels = image.shape[2];
  BoundRowFunction bound;
  bound.type.dtype = DType::kFloat32;
  bound.type.shape = {height, width, channels};
  bound.kernel = std::make_shared<Resize>(height, width, channels == kUnknownSize, image.dtype);
  bound.tensor_arguments = {0};
  return bound;
}

const RowFunctionRegistration kResize({
    .name = "resize",
    .signature = "resize(image, size, method=\"bilinear\")",
    .doc =
        "Resizes an image to float32 of shape (height, width, channels), as tf.image.resize does.\n"
        "\n"
        "image: uint8 or float32 of shape (height, width, channels).\n"
        "size: [height, width], constants.\n"
        "method: \"bilinear\": half-pixel centres, no antialiasing.\n"
        "\n"
        "Values keep their range: uint8 gives 0 to 255. Computed in float32 in TensorFlow's order "
        "of operations.",
    .bind = Bind,
});

}  // namespace
}  // namespace penstock::expr
