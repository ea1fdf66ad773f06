// GifDecoder: its limits, and verdicts where TensorFlow has none. TensorFlow's own pixels and
// verdicts are compared by tests/client/python_parsing_test.py.
#include "server/codec/gif.h"

#include <string>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/decoded_frames.h"
#include "tests/support/peak_memory.h"
#include "tests/support/stops_soon.h"

namespace penstock::testing {
namespace {

const std::string kHead("GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff", 19);

std::string Frame(int width, int height, const std::string& pixels) {
  std::string frame(",\0\0\0\0", 5);
  for (const int side : {width, height}) {
    frame += static_cast<char>(side & 0xff);
    frame += static_cast<char>(side >> 8);
  }
  return frame + '\0' + pixels;
}

// The clear code, the color and the end.
const std::string kBlack("\x02\x02\x44\x01\x00", 5);
const std::string kWhite("\x02\x02\x4c\x01\x00", 5);

constexpr auto* Decode = &DecodeFrames<GifDecoder, GifOptions>;

TEST_CASE("fault 21a: gif: every cut of a file") {
  const std::string first = kHead + Frame(1, 1, kBlack);
  const std::string file = first + Frame(1, 1, kWhite) + ";";
  for (size_t size = 0; size <= file.size(); ++size) {
    CAPTURE(size);
    FramesShape shape;
    const auto pixels = Decode(file.substr(0, size), {}, &shape);
    // A second frame without its whole header and the first byte of its pixels is none; with them,
    // it has to be whole.
    const bool has_one = size >= first.size() && size < first.size() + 11;
    const bool has_two = size >= file.size() - 1;
    REQUIRE(pixels.ok() == (has_one || has_two));
    if (!pixels.ok()) {
      CHECK(pixels.status().code() == absl::StatusCode::kDataLoss);
      CHECK_THAT(std::string(pixels.status().message()),
                 Catch::StartsWith(size < 4 ? "no GIF image by its first bytes"
                                            : "GIF data is damaged: "));
      continue;
    }
    CHECK(shape.frames == (has_two ? 2 : 1));
    CHECK(*pixels ==
          (has_two ? std::vector<uint8_t>{0, 0, 0, 255, 255, 255} : std::vector<uint8_t>{0, 0, 0}));
  }
}

TEST_CASE("gif: the first frame alone") {
  FramesShape shape;
  const auto pixels = Decode(kHead + Frame(1, 1, kWhite) + Frame(1, 1, kBlack) + ";",
                             {.first_frame_only = true}, &shape);
  REQUIRE(pixels.ok());
  CHECK(shape.frames == 1);
  CHECK(*pixels == std::vector<uint8_t>{255, 255, 255});
}

TEST_CASE("fault 21a: gif: sizes are checked before anything is allocated") {
  std::string many = kHead + Frame(8192, 4096, kBlack);
  for (int i = 0; i < 3; ++i) many += Frame(1, 1, kBlack);
  const struct {
    std::string file;
    bool first_frame_only;
    const char* message;
  } cases[] = {
      {kHead + Frame(65535, 65535, kBlack), false,
       "GIF image is too large: 1 frames of 65535 x 65535 > 67108864 pixels"},
      {kHead + Frame(1, 1, kBlack) + Frame(65535, 65535, kBlack), true,
       "GIF image is too large: 1 frames of 65535 x 65535 > 67108864 pixels"},
      {many, false, "GIF image is too large: 3 frames of 8192 x 4096 > 67108864 pixels"},
  };
  for (const auto& c : cases) {
    FramesShape shape;
    const auto pixels = Decode(c.file, {.first_frame_only = c.first_frame_only}, &shape);
    REQUIRE(!pixels.ok());
    CHECK(pixels.status().code() == absl::StatusCode::kDataLoss);
    CHECK(pixels.status().message() == c.message);
    CHECK(shape.bytes() == 0);
  }
}

TEST_CASE("gif: rows and columns of a frame that lie outside of the canvas are left out") {
  for (const size_t place : {size_t{1}, size_t{3}}) {
    std::string outside = Frame(1, 1, kWhite);
    outside[place] = 1;
    FramesShape shape;
    const auto pixels = Decode(kHead + Frame(1, 1, kBlack) + outside + ";", {}, &shape);
    REQUIRE(pixels.ok());
    CHECK(*pixels == std::vector<uint8_t>(6, 0));
  }
}

TEST_CASE("gif: a frame that ends early") {
  FramesShape shape;
  const auto pixels = Decode(kHead + Frame(1, 2, kBlack) + ";", {}, &shape);
  REQUIRE(!pixels.ok());
  CHECK_THAT(std::string(pixels.status().message()), Catch::EndsWith("(frame 0)"));
}

TEST_CASE("fault 35: gif: a file of many short blocks looks for a stop all over it") {
  // A frame's pixels, and behind them what is not looked at, in blocks of a byte.
  std::string blocks = "\x02\x02\x44\x01";
  for (int i = 0; i < (8 << 20); ++i) blocks += std::string("\x01\x00", 2);
  blocks += '\0';
  const std::string extension = std::string("!\xfe", 2) + blocks.substr(4);
  for (const std::string& file :
       {kHead + Frame(1, 1, blocks) + ";", kHead + extension + Frame(1, 1, kBlack) + ";"}) {
    test::CheckStopsSoon([&] {
      FramesShape shape;
      const bool decoded = Decode(file, {}, &shape).ok();
      CHECK(decoded);
    });
  }
}

// AddressSanitizer keeps what has been given back.
#ifndef __SANITIZE_ADDRESS__
TEST_CASE("gif: a file of many frames takes memory for its pixels alone") {
  // Each with two colors of its own.
  std::string file = kHead;
  const std::string frame = std::string(",\0\0\0\0\1\0\1\0\x80", 10) + std::string(6, 'c') + kBlack;
  constexpr int kFrames = 200'000;
  for (int i = 0; i < kFrames; ++i) file += frame;
  file += ';';
  GifDecoder decoder;
  if (!ForgetPeak()) {
    WARN("its memory was not measured: /proc/self/clear_refs cannot be written");
    return;
  }
  const int64_t before_kib = StatusKib("VmHWM:");
  const auto shape = decoder.Start(reinterpret_cast<const uint8_t*>(file.data()), file.size(), {});
  REQUIRE(shape.ok());
  CHECK(shape->frames == kFrames);
  std::vector<uint8_t> pixels(shape->bytes());
  CHECK(decoder.Decode(pixels.data()).ok());
  CHECK(StatusKib("VmHWM:") - before_kib < (8 << 10));
}
#endif

}  // namespace
}  // namespace penstock::testing
