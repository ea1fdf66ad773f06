#include "client/samples/drawn_photos.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <utility>

#include "base/random.h"

namespace penstock::samples {
namespace {

constexpr int kKinds = 5;
constexpr int kFewestPetals = 3;
constexpr int kWidth = 1200;
constexpr int kHeight = 900;
constexpr int kFlowers = 120;  // they cover most of the meadow
constexpr int kSmallest = 40;  // a flower's radius
constexpr int kLargest = 110;
constexpr int kGrain = 24;  // of each pixel: detail for a decoder, as a camera's noise is

struct Color {
  int red, green, blue;
};

constexpr Color kMeadow = {70, 130, 60};
constexpr Color kHeart = {240, 200, 60};
constexpr Color kPetals[kKinds] = {
    {230, 60, 70}, {150, 80, 200}, {240, 240, 235}, {90, 130, 230}, {240, 140, 190}};

class Painter {
 public:
  explicit Painter(int kind) : kind_(kind), draws_(/*seed=*/1, static_cast<uint64_t>(kind)) {}

  Photo Paint() {
    photo_ = {kWidth, kHeight, std::vector<uint8_t>(size_t{3} * kWidth * kHeight)};
    for (int y = 0; y < kHeight; ++y) {
      for (int x = 0; x < kWidth; ++x) Set(x, y, kMeadow, 100 + y * 60 / kHeight);
    }
    for (int i = 0; i < kFlowers; ++i) AddFlower();
    return std::move(photo_);
  }

 private:
  int Draw(int bound) {
    return static_cast<int>(draws_.Below(num_draws_++, static_cast<uint32_t>(bound)));
  }

  void Set(int x, int y, Color color, int percent) {
    const int grain = Draw(2 * kGrain + 1) - kGrain;
    uint8_t* pixel = photo_.rgb.data() + size_t{3} * (size_t(y) * kWidth + x);
    for (int value : {color.red, color.green, color.blue}) {
      *pixel++ = static_cast<uint8_t>(std::clamp(value * percent / 100 + grain, 0, 255));
    }
  }

  // A rose curve: the rim is nearer to the heart between two petals.
  void AddFlower() {
    const int radius = kSmallest + Draw(kLargest - kSmallest + 1);
    const int x = Draw(kWidth), y = Draw(kHeight);
    const double turned = Draw(360) * std::numbers::pi / 180;
    for (int j = std::max(0, y - radius); j < std::min(kHeight, y + radius); ++j) {
      for (int i = std::max(0, x - radius); i < std::min(kWidth, x + radius); ++i) {
        const double distance = std::hypot(i - x, j - y) / radius;
        const double angle = std::atan2(j - y, i - x) + turned;
        const double rim = 0.62 + 0.38 * std::cos((kind_ + kFewestPetals) * angle);
        if (distance < 0.22) {
          Set(i, j, kHeart, 100);
        } else if (distance < rim) {
          Set(i, j, kPetals[kind_], 60 + static_cast<int>(40 * distance / rim));
        }
      }
    }
  }

  int kind_;
  DrawSequence draws_;
  uint64_t num_draws_ = 0;
  Photo photo_;
};

}  // namespace

std::vector<Photo> DrawFlowers() {
  std::vector<Photo> photos;
  for (int kind = 0; kind < kKinds; ++kind) photos.push_back(Painter(kind).Paint());
  return photos;
}

}  // namespace penstock::samples
