#include <cstring>
#include <memory>

#include "base/in_pieces.h"
#include "server/image/adjust.h"
#include "server/kernels/image_arithmetic.h"

namespace penstock::expr {
namespace {

// The mean of each channel, by TensorFlow's order of additions: the second half of the pixels is
// added to the first until one is left. Of an odd number the middle one waits for the next round.
// `sums` has room for the larger half, and may be where the values are.
void FoldMeans(const float* values, int64_t num_pixels, int64_t channels, float* sums,
               float* means) {
  for (int64_t left = num_pixels; left > 1; values = sums) {
    if (left % 4 == 0) {
      left /= 4;
      kernels::AddQuarters(values, static_cast<size_t>(left * channels), sums);
      continue;
    }
    const int64_t right = left / 2;
    left -= right;
    const auto count = static_cast<size_t>(right * channels);
    kernels::AddPairs(values, values + left * channels, count, sums);
    if (left > right && values != sums) {
      std::memcpy(sums + count, values + count, static_cast<size_t>(channels) * sizeof(float));
    }
  }
  const float scale = 1.0f / static_cast<float>(num_pixels);
  for (int64_t c = 0; c < channels; ++c) means[c] = values[c] * scale;
}

class ContrastFilter final : public TileFilter {
 public:
  ContrastFilter(float factor, DType dtype, const Shape& shape, Arena& scratch, RowOutput& out)
      : factor_(factor), dtype_(dtype), scratch_(scratch), out_(out) {
    image_.shape = shape;
    image_.bytes = static_cast<size_t>(*NumElements(shape)) * DTypeSize(dtype);
    pixels_ = scratch.Allocate(image_.bytes);
    image_.data = pixels_;
  }

  uint8_t* Reserve(size_t bytes) override {
    reserved_ = bytes;
    return done_ + bytes > image_.bytes ? scratch_.Allocate(bytes) : pixels_ + done_;
  }
  void Commit() override { done_ += reserved_; }

  absl::Status Finish() override {
    if (done_ == image_.bytes) RunContrast(factor_, dtype_, image_, scratch_, out_);
    return absl::OkStatus();
  }

 private:
  const float factor_;
  const DType dtype_;
  Arena& scratch_;
  RowOutput& out_;
  RowValue image_;
  uint8_t* pixels_ = nullptr;
  size_t done_ = 0;
  size_t reserved_ = 0;
};

}  // namespace

void RunContrast(float factor, DType dtype, const RowValue& image, Arena& scratch, RowOutput& out) {
  const int64_t num_pixels = image.shape[0] * image.shape[1], channels = image.shape[2];
  if (num_pixels * channels == 0) return;
  const auto count = static_cast<size_t>(num_pixels * channels);
  // The means, and as many again as a vector may read behind them.
  const size_t centres = static_cast<size_t>(channels) + kernels::kCentrePadding;
  auto* const means = scratch.AllocateArray<float>(centres);
  if (dtype == DType::kFloat32) {
    auto* const sums =
        scratch.AllocateArray<float>(static_cast<size_t>((num_pixels + 1) / 2 * channels));
    FoldMeans(reinterpret_cast<const float*>(image.data), num_pixels, channels, sums, means);
  } else {
    auto* const values = scratch.AllocateArray<float>(count);
    InPieces(count, [&](size_t first, size_t some) {
      PixelsToFloat(dtype, image.data + first * DTypeSize(dtype), some, values + first);
    });
    FoldMeans(values, num_pixels, channels, values, means);
  }
  for (size_t i = static_cast<size_t>(channels); i < centres; ++i) {
    means[i] = means[i - static_cast<size_t>(channels)];
  }
  const PixelMap map{
      .apply = [factor, means](const float* in, int64_t pixels, int64_t channels, float* to) {
        kernels::StretchAround(in, static_cast<size_t>(pixels * channels), means,
                               static_cast<size_t>(channels), factor, to);
      }};
  RunPixels(map, dtype, image, scratch, out);
}

std::unique_ptr<TileFilter> NewContrastFilter(float factor, DType dtype, const Shape& image,
                                              Arena& scratch, RowOutput& out) {
  return std::make_unique<ContrastFilter>(factor, dtype, image, scratch, out);
}

}  // namespace penstock::expr
