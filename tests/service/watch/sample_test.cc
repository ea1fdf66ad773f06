#include "server/service/watch/sample.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "server/codec/png.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

template <typename T>
v1::SampledFeature Describe(DType dtype, const std::vector<T>& values) {
  return DescribeValues(dtype, reinterpret_cast<const uint8_t*>(values.data()), values.size());
}

TEST_CASE("numbers are described by their range, their middle and a histogram") {
  const v1::SampledFeature feature = Describe<int32_t>(DType::kInt32, {0, 0, 4, 8, 16, -16});
  CHECK(feature.values() == 6);
  CHECK(feature.least() == -16);
  CHECK(feature.most() == 16);
  CHECK(feature.mean() == Approx(2));
  CHECK(feature.deviation() == Approx(std::sqrt((4 + 4 + 4 + 36 + 196 + 324) / 6.0)));
  CHECK(feature.zeros() == 2);
  CHECK(feature.not_finite() == 0);
  REQUIRE(feature.histogram_size() == kSampledBins);
  CHECK(feature.histogram(0) == 1);
  CHECK(feature.histogram(8) == 2);
  CHECK(feature.histogram(10) == 1);
  CHECK(feature.histogram(12) == 1);
  CHECK(feature.histogram(15) == 1);
}

TEST_CASE("what is not finite is counted, and extremes do not overflow") {
  const double infinity = std::numeric_limits<double>::infinity();
  const double most = std::numeric_limits<double>::max();
  const v1::SampledFeature feature =
      Describe<double>(DType::kFloat64, {most, -most, std::nan(""), infinity, -infinity, 0});
  CHECK(feature.not_finite() == 3);
  CHECK(feature.least() == -most);
  CHECK(feature.most() == most);
  uint64_t counted = 0;
  for (const uint64_t bin : feature.histogram()) counted += bin;
  CHECK(counted == 3);
  const v1::SampledFeature none = Describe<float>(DType::kFloat32, {std::nanf("")});
  CHECK(none.not_finite() == 1);
  CHECK(none.histogram().empty());
  const v1::SampledFeature same = Describe<float>(DType::kFloat32, {2, 2, 2});
  CHECK(same.mean() == 2);
  CHECK(same.deviation() == 0);
  CHECK(same.histogram(0) == 3);
}

TEST_CASE("every dtype of numbers is read") {
  CHECK(Describe<uint16_t>(DType::kFloat16, {0x3c00, 0xc000, 0x0001, 0x7c00}).least() == -2);
  CHECK(Describe<uint16_t>(DType::kFloat16, {0x3c00, 0x0001}).least() ==
        Approx(std::ldexp(1, -24)));
  CHECK(Describe<uint16_t>(DType::kFloat16, {0x7c00}).not_finite() == 1);
  CHECK(Describe<uint16_t>(DType::kBfloat16, {0x3f80, 0x4049}).most() == Approx(3.140625));
  CHECK(Describe<uint8_t>(DType::kBool, {1, 0}).mean() == 0.5);
  CHECK(Describe<int8_t>(DType::kInt8, {-128, 127}).least() == -128);
  CHECK(Describe<uint64_t>(DType::kUint64, {uint64_t{1} << 63}).most() == std::ldexp(1, 63));
  CHECK(Describe<int64_t>(DType::kInt64, {-5}).most() == -5);
  CHECK(Describe<uint8_t>(DType::kString, {1}).values() == 0);
}

TEST_CASE("pictures are known by their shape") {
  const struct {
    std::vector<int64_t> shape;
    bool is;
    bool first;
    int64_t channels;
  } kCases[] = {
      {{32, 48, 3}, true, false, 3},     {{32, 48, 1}, true, false, 1},
      {{3, 32, 48}, true, true, 3},      {{32, 48}, true, false, 1},
      {{32, 48, 4}, false, false, 0},    {{32}, false, false, 0},
      {{7, 32, 3}, false, false, 0},     {{}, false, false, 0},
      {{2, 32, 48, 3}, false, false, 0},
  };
  for (const auto& one : kCases) {
    CAPTURE(one.shape.size());
    const auto layout = LooksLikePictures(one.shape);
    REQUIRE(layout.has_value() == one.is);
    if (!one.is) continue;
    CHECK(layout->channels_first == one.first);
    CHECK(layout->channels == one.channels);
  }
}

// The sheet's pixels.
std::vector<uint8_t> Decode(const std::string& png, int64_t* height, int64_t* width) {
  PngDecoder decoder;
  const auto shape =
      decoder.Start(reinterpret_cast<const uint8_t*>(png.data()), png.size(), PngOptions());
  REQUIRE(shape.ok());
  std::vector<uint8_t> pixels(shape->bytes());
  REQUIRE(decoder.Decode(pixels.data()).ok());
  *height = shape->height;
  *width = shape->width;
  return pixels;
}

TEST_CASE("a sheet shows the pictures side by side, bytes as they are") {
  constexpr int kRows = 10, kSide = 8;
  std::vector<uint8_t> pictures;
  for (int row = 0; row < kRows; ++row) {
    for (int i = 0; i < kSide * kSide * 3; ++i)
      pictures.push_back(static_cast<uint8_t>(20 * row + i % 3));
  }
  const auto png = ContactSheet(DType::kUint8, {kSide, kSide, 3, false}, pictures.data(), kRows);
  REQUIRE(png.ok());
  int64_t height = 0, width = 0;
  const std::vector<uint8_t> pixels = Decode(*png, &height, &width);
  // Eight in a line, two pixels between.
  REQUIRE(width == 8 * kSide + 7 * 2);
  REQUIRE(height == 2 * kSide + 2);
  const auto pixel = [&](int64_t y, int64_t x, int channel) {
    return pixels[static_cast<size_t>((y * width + x) * 3 + channel)];
  };
  CHECK(pixel(0, 0, 0) == 0);
  CHECK(pixel(7, 7, 2) == 2);
  CHECK(pixel(0, 8, 0) == 255);
  CHECK(pixel(0, 10, 1) == 21);
  CHECK(pixel(10, 10, 2) == 20 * 9 + 2);
  CHECK(pixel(10, 20, 0) == 255);  // there is no eleventh
}

TEST_CASE("a sheet of numbers goes from black to white, and large pictures are made smaller") {
  constexpr int64_t kSide = 200;
  std::vector<float> pictures(kSide * kSide);
  for (size_t i = 0; i < pictures.size(); ++i) pictures[i] = i % kSide < kSide / 2 ? -3.0f : 5.0f;
  pictures[0] = std::nanf("");
  const auto png = ContactSheet(DType::kFloat32, {kSide, kSide, 1, false},
                                reinterpret_cast<const uint8_t*>(pictures.data()), 1);
  REQUIRE(png.ok());
  int64_t height = 0, width = 0;
  const std::vector<uint8_t> pixels = Decode(*png, &height, &width);
  CHECK(width == 67);
  CHECK(height == 67);
  CHECK(pixels[0] == 0);
  CHECK(pixels[1] == 0);
  CHECK(pixels[66] == 255);
  CHECK_FALSE(ContactSheet(DType::kString, {8, 8, 1, false}, nullptr, 1).ok());
}

}  // namespace
}  // namespace penstock
