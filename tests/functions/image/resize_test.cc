#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/arena.h"
#include "server/codec/jpeg.h"
#include "server/kernels/resize.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/instruction_sets.h"

namespace penstock::testing {
namespace {

struct Golden {
  const char* file;
  bool is_float;  // decoded pixels over 255 as float32, else as they are
  int64_t height;
  int64_t width;
  uint64_t hash;  // of the result's bytes
};

const Golden kGoldens[] = {
#include "tests/golden/image_resize.inc"
};

struct Image {
  Shape shape;
  std::vector<uint8_t> pixels;
};

Image Decode(const std::string& file) {
  const std::string jpeg = ReadGolden("images/" + file);
  JpegDecoder decoder;
  const auto shape = decoder.Start(reinterpret_cast<const uint8_t*>(jpeg.data()), jpeg.size(), {});
  REQUIRE(shape.ok());
  Image image{{shape->height, shape->width, shape->channels}, std::vector<uint8_t>(shape->bytes())};
  REQUIRE(decoder.Decode(image.pixels.data()).ok());
  return image;
}

std::vector<LiteralArgument> Size(int64_t height, int64_t width) {
  return {std::vector<int64_t>{height, width}, {}, {}, {}, {}};
}

TEST_CASE("resize: TensorFlow's bits on every instruction set") {
  ForEachInstructionSet([](const char* set) {
    for (const Golden& golden : kGoldens) {
      CAPTURE(set, golden.file, golden.is_float, golden.height, golden.width);
      const Image image = Decode(golden.file);
      std::vector<float> floats(image.pixels.begin(), image.pixels.end());
      for (float& value : floats) value /= 255.0f;
      const DType dtype = golden.is_float ? DType::kFloat32 : DType::kUint8;
      const Shape unknown{kUnknownSize, kUnknownSize, image.shape[2]};
      const auto bound = Bind("resize", {dtype, unknown}, Size(golden.height, golden.width));
      REQUIRE(bound.ok());
      CHECK(bound->type ==
            TensorType{DType::kFloat32, {golden.height, golden.width, image.shape[2]}});
      expr::RowValue value;
      value.shape = image.shape;
      value.data =
          golden.is_float ? reinterpret_cast<const uint8_t*>(floats.data()) : image.pixels.data();
      value.bytes = image.pixels.size() * DTypeSize(dtype);
      Arena arena;
      CollectedOutput out;
      REQUIRE(bound->kernel->Run({&value, 1}, arena, out).ok());
      CHECK(out.times_shaped() == 0);
      CHECK(out.tile_bytes_max() <= 8192);
      REQUIRE(out.bytes().size() == sizeof(float) * golden.height * golden.width * image.shape[2]);
      CHECK(Fnv1a(out.bytes().data(), out.bytes().size()) == golden.hash);
    }
  });
}

TEST_CASE("resize: a kernel equals its scalar twin on all widths") {
  std::mt19937 random(5);
  ForEachInstructionSet([&](const char* set) {
    for (const int channels : {1, 2, 3, 4, 7}) {
      for (int64_t width_in = 1; width_in <= 70; width_in += 1 + width_in / 12) {
        for (const int64_t width_out : {1, 2, 3, 5, 8, 16, 17, 31, 33, 64, 100}) {
          CAPTURE(set, channels, width_in, width_out);
          Arena arena;
          const kernels::BilinearRow row = kernels::MakeBilinearRowPart(
              width_in, width_out, 0, width_out, channels, /*mirrored=*/false,
              arena.Allocate(kernels::BilinearRowBytes(width_out, channels)));
          // Exactly a row, so that a sanitizer sees reads beyond it.
          std::vector<uint8_t> in(width_in * channels);
          for (uint8_t& value : in) value = static_cast<uint8_t>(random());
          const size_t count = width_out * channels;
          const size_t padding = kernels::kBilinearPadding / sizeof(float);
          std::vector<float> ours(count + padding), twin(count), other(count + padding);
          kernels::ResizeRow(row, in.data(), ours.data());
          kernels::ResizeRowScalar(row, in.data(), twin.data());
          CHECK(std::memcmp(ours.data(), twin.data(), count * sizeof(float)) == 0);
          for (float& value : other) value = static_cast<float>(random()) / 1e7f;
          std::vector<float> lerped(count + padding), lerped_twin(count);
          kernels::LerpRows(ours.data(), other.data(), 0.3f, count, lerped.data());
          kernels::LerpRowsScalar(ours.data(), other.data(), 0.3f, count, lerped_twin.data());
          CHECK(std::memcmp(lerped.data(), lerped_twin.data(), count * sizeof(float)) == 0);
        }
      }
    }
  });
}

TEST_CASE("resize: channels that only the data tells") {
  const auto bound =
      Bind("resize", {DType::kUint8, {kUnknownSize, kUnknownSize, kUnknownSize}}, Size(4, 5));
  REQUIRE(bound.ok());
  CHECK(TypeToString(bound->type) == "float32 (4, 5, ?)");
  const std::vector<uint8_t> grey(6 * 7, 9);
  expr::RowValue value;
  value.data = grey.data();
  value.bytes = grey.size();
  value.shape = {6, 7, 1};
  Arena arena;
  CollectedOutput out;
  REQUIRE(bound->kernel->Run({&value, 1}, arena, out).ok());
  CHECK(out.times_shaped() == 1);
  CHECK(out.shape() == Shape{4, 5, 1});
  CHECK(out.bytes().size() == 4 * 5 * sizeof(float));
}

TEST_CASE("resize: an image without pixels is an error") {
  const auto bound = Bind("resize", {DType::kUint8, {kUnknownSize, kUnknownSize, 3}}, Size(4, 5));
  REQUIRE(bound.ok());
  expr::RowValue value;
  value.shape = {0, 7, 3};
  Arena arena;
  CollectedOutput out;
  CHECK(bound->kernel->Run({&value, 1}, arena, out).code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("resize: wrong arguments") {
  const auto message = [](const TensorType& type, const std::vector<LiteralArgument>& arguments) {
    const auto bound = Bind("resize", type, arguments);
    CHECK(bound.status().code() == absl::StatusCode::kInvalidArgument);
    return std::string(bound.status().message());
  };
  const TensorType image{DType::kUint8, {kUnknownSize, kUnknownSize, 3}};
  CHECK(message({DType::kInt32, {4, 4, 3}}, Size(2, 2)) ==
        "image: expected uint8, float32, int8, uint16, int16 of shape (height, width, channels), "
        "found int32 (4, 4, 3)");
  CHECK(message({DType::kUint8, {4, 4}}, Size(2, 2)).find("found uint8 (4, 4)") !=
        std::string::npos);
  const std::string size =
      "size: expected a list of integers of 1 to 1048576, [height, width], found ";
  CHECK(message(image, Size(0, 2)) == size + "[0, 2]");
  CHECK(message(image, {std::vector<int64_t>{2}, {}, {}, {}, {}}) == size + "[2]");
  CHECK_THAT(message(image, {int64_t{192}, {}, {}, {}, {}}), Catch::StartsWith(size));
  CHECK(message(image, {std::vector<int64_t>{2, 2}, std::string("cubic"), {}, {}, {}}) ==
        "method: expected one of \"bilinear\", \"nearest\", \"bicubic\", \"area\", \"lanczos3\", "
        "\"lanczos5\", \"gaussian\", \"mitchellcubic\", found \"cubic\"");
  CHECK(Bind("resize", image, {std::vector<int64_t>{2, 2}, std::string("bilinear"), {}, {}, {}})
            .ok());
}

}  // namespace
}  // namespace penstock::testing
