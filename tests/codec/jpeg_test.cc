#include "server/codec/jpeg.h"

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

struct Golden {
  const char* file;
  size_t size;   // how much of it is there
  int64_t flip;  // which bit is flipped; -1: none
  int channels;
  int ratio;
  bool fancy_upscaling;
  bool accurate_dct;
  JpegShape shape;  // height 0: TensorFlow refuses
  uint64_t hash;
};

const Golden kGoldens[] = {
#include "tests/golden/image_decode.inc"
};

struct Decoded {
  absl::Status status;
  JpegShape shape;
  std::vector<uint8_t> pixels;
};

Decoded Decode(JpegDecoder& decoder, const std::string& jpeg, const JpegOptions& options) {
  // A copy of exactly the data's size, so that a sanitizer sees any overrun.
  const std::vector<uint8_t> data(jpeg.begin(), jpeg.end());
  const auto shape = decoder.Start(data.data(), data.size(), options);
  if (!shape.ok()) return {shape.status(), {}, {}};
  Decoded decoded{absl::OkStatus(), *shape, std::vector<uint8_t>(shape->bytes())};
  decoded.status = decoder.Decode(decoded.pixels.data());
  return decoded;
}

Decoded Decode(const std::string& jpeg, const JpegOptions& options = {}) {
  JpegDecoder decoder;
  return Decode(decoder, jpeg, options);
}

std::string Message(const std::string& jpeg) {
  const absl::Status status = Decode(jpeg).status;
  CHECK(status.code() == absl::StatusCode::kDataLoss);
  return std::string(status.message());
}

// Where the start-of-frame segment of a baseline or progressive file begins.
size_t FrameHeader(const std::string& jpeg) {
  size_t at = jpeg.find("\xff\xc0");
  if (at == std::string::npos) at = jpeg.find("\xff\xc2");
  REQUIRE(at != std::string::npos);
  return at;
}

std::string WithSize(std::string jpeg, int height, int width) {
  const size_t at = FrameHeader(jpeg) + 5;
  jpeg[at] = static_cast<char>(height >> 8);
  jpeg[at + 1] = static_cast<char>(height);
  jpeg[at + 2] = static_cast<char>(width >> 8);
  jpeg[at + 3] = static_cast<char>(width);
  return jpeg;
}

// Numbers of a damaged image may overflow. What libjpeg-turbo makes of these four depends on its
// instructions (docs/limits.md).
bool HasOtherPixelsHere(const Golden& golden) {
#if defined(__aarch64__)
  const std::string_view file = golden.file;
  return (file == "rgb_420.jpg" && golden.flip == 9384) ||
         (file == "rgb_progressive.jpg" && golden.flip == 2691) ||
         (file == "rgb_restarts.jpg" && (golden.flip == 3787 || golden.flip == 5635));
#else
  return false;
#endif
}

TEST_CASE("pixels and verdicts are TensorFlow's") {
  // One decoder for all: what one image left behind must not show in the next.
  JpegDecoder decoder;
  for (const Golden& golden : kGoldens) {
    CAPTURE(golden.file, golden.size, golden.flip, golden.channels, golden.ratio,
            golden.fancy_upscaling, golden.accurate_dct);
    std::string jpeg = ReadGolden(std::string("images/") + golden.file).substr(0, golden.size);
    if (golden.flip >= 0) {
      jpeg[golden.flip / 8] = static_cast<char>(jpeg[golden.flip / 8] ^ 1 << golden.flip % 8);
    }
    JpegOptions options;
    options.channels = golden.channels;
    options.ratio = golden.ratio;
    options.fancy_upscaling = golden.fancy_upscaling;
    options.accurate_dct = golden.accurate_dct;
    const Decoded ours = Decode(decoder, jpeg, options);
    CAPTURE(ours.status.ToString());
    REQUIRE(ours.status.ok() == (golden.shape.height > 0));
    if (!ours.status.ok()) continue;
    CHECK(ours.shape.height == golden.shape.height);
    CHECK(ours.shape.width == golden.shape.width);
    CHECK(ours.shape.channels == golden.shape.channels);
    if (HasOtherPixelsHere(golden)) continue;
    CHECK(Fnv1a(ours.pixels.data(), ours.pixels.size()) == golden.hash);
  }
}

TEST_CASE("fault 20: every cut is refused and called a cut") {
  for (const std::string name : {"images/rgb_420_odd.jpg", "images/rgb_progressive.jpg"}) {
    const std::string jpeg = ReadGolden(name);
    // Half an end marker is enough for some images, see the goldens.
    for (size_t size = 3; size < jpeg.size() - 1; ++size) {
      CAPTURE(name, size);
      CHECK(Message(jpeg.substr(0, size)) ==
            "JPEG data is cut: it ends before its end marker (" + std::to_string(size) + " bytes)");
    }
  }
}

TEST_CASE("what is no JPEG is said so") {
  CHECK(Message("") == "not a JPEG: expected the bytes ff d8 ff first (0 bytes)");
  CHECK(Message("\x89PNG\r\n") == "not a JPEG: expected the bytes ff d8 ff first (6 bytes)");
}

TEST_CASE("fault 20: sizes are checked before anything is allocated") {
  const std::string jpeg = ReadGolden("images/rgb_420.jpg");
  CHECK(Message(WithSize(jpeg, 65500, 65500)) ==
        "JPEG cannot be decoded: image larger than the limit of 16384 pixels a side and 67108864 "
        "in all: 65500 x 65500");
  CHECK(Message(WithSize(jpeg, 16385, 1)).find("16384 pixels a side") != std::string::npos);
  CHECK(Message(WithSize(jpeg, 16384, 8192)).find("8192 x 16384") != std::string::npos);
  CHECK(!Message(WithSize(jpeg, 0, 100)).empty());
  CHECK(!Message(WithSize(jpeg, 100, 0)).empty());
}

TEST_CASE("12 bits a sample are refused") {
  std::string jpeg = ReadGolden("images/rgb_420.jpg");
  jpeg[FrameHeader(jpeg) + 4] = 12;
  CHECK(Message(jpeg).find("precision") != std::string::npos);
}

TEST_CASE("fault 20: scans have a limit") {
  const std::string jpeg = ReadGolden("images/rgb_progressive.jpg");
  const size_t scan = jpeg.rfind("\xff\xda");
  const std::string head = jpeg.substr(0, scan);
  const std::string again = jpeg.substr(scan, jpeg.size() - 2 - scan);
  std::string bomb = head;
  for (int i = 0; i < 300; ++i) bomb += again;
  CHECK(Message(bomb + "\xff\xd9") == "JPEG cannot be decoded: more scans than the limit of 256");
}

}  // namespace
}  // namespace penstock::testing
