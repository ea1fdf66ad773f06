// decode_image hands on to decode_jpeg and decode_png, whose own tests compare them with
// TensorFlow.
#include "base/arena.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

absl::Status Decode(const std::string& name, const std::string& bytes,
                    const std::vector<LiteralArgument>& rest, CollectedOutput& out) {
  const auto bound = Bind(name, {DType::kString, {}}, rest);
  REQUIRE(bound.ok());
  expr::RowValue value;
  value.data = reinterpret_cast<const uint8_t*>(bytes.data());
  value.bytes = bytes.size();
  Arena arena;
  return bound->kernel->Run({&value, 1}, arena, out);
}

// A grey PNG image of 1 x 1 pixels, 0x80.
std::string TinyPng() {
  static constexpr uint8_t kBytes[] = {
      0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48,
      0x44, 0x52, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x00, 0x00, 0x00,
      0x00, 0x3a, 0x7e, 0x9b, 0x55, 0x00, 0x00, 0x00, 0x0a, 0x49, 0x44, 0x41, 0x54, 0x78,
      0x9c, 0x63, 0x68, 0x00, 0x00, 0x00, 0x82, 0x00, 0x81, 0x77, 0xcd, 0x72, 0xb6, 0x00,
      0x00, 0x00, 0x00, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82};
  return {reinterpret_cast<const char*>(kBytes), sizeof(kBytes)};
}

TEST_CASE("decode_image: JPEG as decode_jpeg") {
  for (const int64_t channels : {0, 1, 3}) {
    for (const char* file : {"rgb_420.jpg", "grey.jpg"}) {
      CAPTURE(channels, file);
      const std::string bytes = ReadGolden(std::string("images/") + file);
      CollectedOutput ours, jpeg;
      REQUIRE(Decode("decode_image", bytes, {channels, {}}, ours).ok());
      REQUIRE(Decode("decode_jpeg", bytes, {channels, {}, {}, {}, {}, {}, {}}, jpeg).ok());
      CHECK(ours.shape() == jpeg.shape());
      CHECK(ours.bytes() == jpeg.bytes());
    }
  }
}

TEST_CASE("decode_image: PNG as decode_png") {
  for (const int64_t channels : {0, 1, 3, 4}) {
    CAPTURE(channels);
    CollectedOutput ours;
    REQUIRE(Decode("decode_image", TinyPng(), {channels, {}}, ours).ok());
    CHECK(ours.shape() == Shape{1, 1, channels == 0 ? 1 : channels});
    std::vector<uint8_t> expected(channels == 0 ? 1 : channels, 0x80);
    if (channels == 4) expected[3] = 0xff;
    CHECK(ours.bytes() == expected);
  }
}

TEST_CASE("decode_image: what is none of them, and what JPEG has not") {
  CollectedOutput out;
  const std::pair<const char*, const char*> cases[] = {
      {"", "no JPEG, PNG, BMP, GIF or WebP image"},
      {"\xff\xd8", "no JPEG, PNG, BMP, GIF or WebP image"},
      {"BM", "BMP image without its header"},
      {"GIF89a", "GIF data is damaged"},
  };
  for (const auto& [bytes, message] : cases) {
    CAPTURE(bytes);
    const absl::Status status = Decode("decode_image", bytes, {{}, false}, out);
    CHECK(status.code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(status.message()), Catch::StartsWith(message));
  }
  CHECK_THAT(std::string(Decode("decode_image", "GIF89a", {{}, {}}, out).message()),
             Catch::StartsWith("GIF image has an axis of frames"));
  const std::string webp = ReadGolden("images/lossless_alpha.webp");
  CHECK(Decode("decode_image", webp, {{}, {}}, out).message() ==
        "WebP image has an axis of frames, which other formats have not: expand_animations=False "
        "gives its first frame, decode_webp all");
  CHECK(Decode("decode_image", webp, {int64_t{3}, false}, out).message() ==
        "WebP image has 4 channels, not 3");
  CHECK(Decode("decode_image", ReadGolden("images/grey.jpg"), {int64_t{4}, {}}, out).message() ==
        "JPEG image cannot be decoded to 4 channels");
  CHECK(Bind("decode_image", {DType::kString, {}}, {int64_t{2}, {}}).status().message() ==
        "channels: expected 0, 1, 3 or 4 as a constant");
}

}  // namespace
}  // namespace penstock::testing
