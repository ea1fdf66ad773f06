#include "server/image/blur.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/stop_flag.h"
#include "server/kernels/power.h"
#include "server/kernels/weighted_sum.h"

namespace penstock::expr {
namespace {

// Which line stands at `index` of an axis that is mirrored at both ends. REQUIRES: -size < index <
// 2 size - 1.
int64_t Mirrored(int64_t index, int64_t size) {
  return size - 1 - std::abs(size - 1 - std::abs(index));
}

class Blur {
 public:
  Blur(std::vector<float> weights, DType dtype, const ImageView& image, Arena& scratch)
      : weights_(std::move(weights)),
        size_(static_cast<int64_t>(weights_.size())),
        half_(size_ / 2),
        dtype_(dtype),
        image_(image),
        values_(image.width * image.channels),
        terms_(weights_.size()) {
    const auto count = static_cast<size_t>(values_);
    padded_ = scratch.AllocateArray<float>(count + static_cast<size_t>(2 * half_ * image.channels));
    sums_ = scratch.AllocateArray<float>(count);
    for (int64_t i = 0; i < size_; ++i) lines_.push_back(scratch.AllocateArray<float>(count));
    for (int64_t y = -half_; y < half_; ++y) BlurAcross(y);
  }

  void Next(uint8_t* out) {
    BlurAcross(row_ + half_);
    for (int64_t i = 0; i < size_; ++i) terms_[static_cast<size_t>(i)] = Line(row_ - half_ + i);
    ++row_;
    if (dtype_ == DType::kFloat32) {
      SumTerms(reinterpret_cast<float*>(out));
      return;
    }
    SumTerms(sums_);
    const auto count = static_cast<size_t>(values_);
    // Halves to even.
    for (size_t i = 0; i < count; ++i)
      out[i] = static_cast<uint8_t>(std::clamp(std::nearbyint(sums_[i]), 0.0F, 255.0F));
  }

 private:
  // As many lines as there are weights are kept, blurred along themselves.
  float* Line(int64_t y) { return lines_[static_cast<size_t>((y + half_) % size_)]; }

  void BlurAcross(int64_t y) {
    // A line of a wide image takes milliseconds.
    look_.Did(static_cast<uint64_t>(values_ * size_));
    const uint8_t* const row = image_.row(Mirrored(y, image_.height));
    float* const middle = padded_ + half_ * image_.channels;
    if (dtype_ == DType::kFloat32) {
      std::memcpy(middle, row, static_cast<size_t>(image_.row_bytes()));
    } else {
      std::copy(row, row + values_, middle);
    }
    for (int64_t x = 1; x <= half_; ++x) {
      const auto copy = [&](int64_t to) {
        std::copy_n(middle + Mirrored(to, image_.width) * image_.channels, image_.channels,
                    middle + to * image_.channels);
      };
      copy(-x);
      copy(image_.width - 1 + x);
    }
    for (int64_t i = 0; i < size_; ++i)
      terms_[static_cast<size_t>(i)] = padded_ + i * image_.channels;
    SumTerms(Line(y));
  }

  void SumTerms(float* out) {
    kernels::SumRows(terms_.data(), weights_.data(), weights_.size(), static_cast<size_t>(values_),
                     0, out);
  }

  const std::vector<float> weights_;
  const int64_t size_;
  const int64_t half_;
  const DType dtype_;
  const ImageView image_;
  const int64_t values_;  // of a row
  float* padded_ = nullptr;
  float* sums_ = nullptr;
  std::vector<float*> lines_;
  std::vector<const float*> terms_;
  int64_t row_ = 0;
  StopLook look_;
};

}  // namespace

std::vector<float> GaussianWeights(int64_t size, double sigma) {
  std::vector<float> weights;
  float sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double x = (static_cast<double>(i) - static_cast<double>(size - 1) / 2) / sigma;
    weights.push_back(static_cast<float>(kernels::ExpExtended(-0.5 * x * x)));
    sum += weights.back();
  }
  for (float& weight : weights) weight /= sum;
  return weights;
}

absl::Status CheckBlur(const ImageView& image, int64_t size) {
  if (image.height > size / 2 && image.width > size / 2) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("image too small for a blur of ", size,
                   " pixels: ", ShapeToString({image.height, image.width, image.channels})));
}

NextRows StartBlur(std::vector<float> weights, DType dtype, const ImageView& image,
                   Arena& scratch) {
  return [blur = Blur(std::move(weights), dtype, image, scratch), row_bytes = image.row_bytes()](
             int64_t num_rows, uint8_t* out) mutable {
    for (int64_t i = 0; i < num_rows; ++i, out += row_bytes) blur.Next(out);
  };
}

}  // namespace penstock::expr
