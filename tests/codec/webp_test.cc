// WebpDecoder: its limits, and animations without alpha, for which TensorFlow writes past its
// tensor. TensorFlow's own pixels and verdicts are compared by tests/client/python_parsing_test.py.
#include "server/codec/webp.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/decoded_frames.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

std::string LittleEndian(uint64_t value, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i) & 0xff);
  return out;
}

std::string Chunk(const std::string& name, const std::string& data) {
  return name + LittleEndian(static_cast<uint32_t>(data.size()), 4) + data +
         std::string(data.size() % 2, '\0');
}

std::string File(const std::string& chunks) {
  return "RIFF" + LittleEndian(static_cast<uint32_t>(chunks.size() + 4), 4) + "WEBP" + chunks;
}

std::string Sides(uint32_t width, uint32_t height) {
  return LittleEndian(width - 1, 3) + LittleEndian(height - 1, 3);
}

// The image data of a lossless image of one chunk.
std::string Bits(const std::string& name) {
  const std::string file = ReadGolden("images/" + name);
  return file.substr(12);
}

// An animation without alpha.
std::string Frames(uint32_t width, uint32_t height, size_t count) {
  std::string chunks = Chunk("VP8X", LittleEndian(2, 4) + Sides(width, height)) +
                       Chunk("ANIM", std::string(6, '\0'));
  const std::string frame = Chunk(
      "ANMF", LittleEndian(0, 6) + Sides(9, 8) + std::string(4, '\0') + Bits("lossless.webp"));
  for (size_t i = 0; i < count; ++i) chunks += frame;
  return File(chunks);
}

constexpr auto* Decode = &DecodeFrames<WebpDecoder, WebpOptions>;

TEST_CASE("webp: an animation without alpha has three channels") {
  FramesShape still, shape;
  const auto image = Decode(ReadGolden("images/lossless.webp"), {}, &still);
  REQUIRE(image.ok());
  std::vector<uint8_t> twice = *image;
  twice.insert(twice.end(), image->begin(), image->end());
  for (const int channels : {0, 3}) {
    const auto pixels = Decode(Frames(9, 8, 2), {.channels = channels}, &shape);
    REQUIRE(pixels.ok());
    CHECK(shape.frames == 2);
    CHECK(shape.channels == 3);
    CHECK(*pixels == twice);
    const auto first =
        Decode(Frames(9, 8, 2), {.channels = channels, .first_frame_only = true}, &shape);
    REQUIRE(first.ok());
    CHECK(shape.frames == 1);
    CHECK(*first == *image);
  }
  CHECK(Decode(Frames(9, 8, 2), {.channels = 4}, &shape).status().message() ==
        "WebP image has 3 channels, not 4");
  // What the frame does not cover is black.
  const auto wide = Decode(Frames(10, 8, 1), {}, &shape);
  REQUIRE(wide.ok());
  CHECK(std::vector<uint8_t>(wide->begin() + 27, wide->begin() + 30) ==
        std::vector<uint8_t>{0, 0, 0});
}

TEST_CASE("fault 21b: webp: every cut of a file") {
  for (const std::string& file : {ReadGolden("images/lossy_alpha.webp"),
                                  ReadGolden("images/lossless.webp"), Frames(9, 8, 2)}) {
    for (size_t size = 0; size < file.size(); ++size) {
      CAPTURE(size);
      FramesShape shape;
      const absl::Status status = Decode(file.substr(0, size), {}, &shape).status();
      CHECK(status.code() == absl::StatusCode::kDataLoss);
      CHECK_THAT(std::string(status.message()),
                 Catch::StartsWith(size < 13 ? "no WebP image by its first bytes"
                                             : "WebP data is damaged: "));
    }
  }
}

TEST_CASE("fault 21b: webp: sizes are checked before anything is allocated") {
  // Of a lossless image a signature and the sides, 14 bits each, less one.
  const std::string sides = "\x2f" + LittleEndian(16383 | 16382 << 14, 4);
  const struct {
    std::string file;
    std::string message;
  } cases[] = {
      {File(Chunk("VP8L", sides + std::string(20, '\0'))),
       "16384 x 16383 > 16384 x 16384 or 67108864 pixels"},
      {Frames(1 << 24, 100, 1), "16777216 x 100 > 16384 x 16384 or 67108864 pixels"},
      {Frames(8192, 4096, 3), "3 frames of 8192 x 4096 > 16384 or 67108864 pixels"},
      {Frames(9, 8, 16385), "16385 frames of 9 x 8 > 16384 or 67108864 pixels"},
  };
  for (const auto& c : cases) {
    FramesShape shape;
    const absl::Status status = Decode(c.file, {}, &shape).status();
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK(status.message() == "WebP image is too large: " + c.message);
    CHECK(shape.bytes() == 0);
  }
}

}  // namespace
}  // namespace penstock::testing
