// TensorFlow's verdicts on cut files, its pixels of windows, and Pillow's of turned ones
// (tests/golden/make_jpeg_option_goldens.py).
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "server/codec/exif.h"
#include "server/codec/jpeg.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/hex.h"

namespace penstock::testing {
namespace {

using Json = nlohmann::json;

struct Decoded {
  absl::Status status;
  JpegShape shape;
  std::vector<uint8_t> pixels;
};

Decoded Decode(const std::vector<uint8_t>& file, const JpegOptions& options) {
  Decoded result;
  JpegDecoder decoder;
  const auto shape = decoder.Start(file.data(), file.size(), options);
  result.status = shape.status();
  if (!shape.ok()) return result;
  result.shape = *shape;
  result.pixels.resize(shape->bytes());
  result.status = decoder.Decode(result.pixels.data());
  return result;
}

TEST_CASE("JPEG options give what TensorFlow and Pillow give") {
  const Json document = Json::parse(ReadGolden("jpeg_options.json"));
  std::map<std::string, int> seen;
  int whole = 0;
  for (const auto& json : document["cases"]) {
    const std::string kind = json["kind"].get<std::string>();
    const std::vector<uint8_t> file = test::BytesFromHex(json["file"].get<std::string>());
    const bool fails = json.contains("fails");
    const int number = seen[kind]++;
    CAPTURE(kind, number, file.size(), fails);
    const auto want =
        fails ? std::vector<uint8_t>{} : test::BytesFromHex(json["pixels"].get<std::string>());
    if (kind == "crop") {
      const auto window = json["window"].get<std::vector<int>>();
      JpegDecoder decoder;
      const auto shape = decoder.Start(file.data(), file.size(), JpegOptions{});
      REQUIRE(shape.ok());
      const bool inside =
          window[0] + window[2] <= shape->height && window[1] + window[3] <= shape->width;
      CHECK(inside == !fails);
      if (!inside) continue;
      std::vector<uint8_t> pixels(want.size());
      REQUIRE(
          decoder.DecodeWindow({window[0], window[1], window[2], window[3]}, pixels.data()).ok());
      CHECK((pixels == want));
      continue;
    }
    JpegOptions options;
    options.channels = 3;
    options.recover_truncated = kind == "recover";
    options.upright = kind == "upright";
    options.accurate_dct = options.upright;  // Pillow's
    const Decoded got = Decode(file, options);
    INFO(got.status.ToString());
    REQUIRE(got.status.ok() == !fails);
    if (fails) continue;
    CHECK(got.shape.height == json["shape"][0].get<int>());
    CHECK(got.shape.width == json["shape"][1].get<int>());
    // What is missing is grey here, and garbage there.
    if (!options.recover_truncated || json["whole"].get<bool>()) CHECK((got.pixels == want));
    if (options.recover_truncated) {
      const JpegOptions strict{.channels = 3};
      whole += json["whole"].get<bool>();
      // The option makes the difference.
      const bool ended = file[file.size() - 2] == 0xff && file.back() == 0xd9;
      CHECK(Decode(file, strict).status.ok() == ended);
    }
  }
  CHECK(whole == 8);
  CHECK(seen["recover"] == 36);
  CHECK(seen["crop"] == 21);
  CHECK(seen["upright"] == 22);
}

TEST_CASE("A window of an upright image is a part of it") {
  const Json document = Json::parse(ReadGolden("jpeg_options.json"));
  int turned = 0;
  for (const auto& json : document["cases"]) {
    if (json["kind"] != "upright") continue;
    const std::vector<uint8_t> file = test::BytesFromHex(json["file"].get<std::string>());
    JpegOptions options;
    options.upright = true;
    const Decoded whole = Decode(file, options);
    REQUIRE(whole.status.ok());
    turned += JpegOrientation(file.data(), file.size()) != 1;
    JpegDecoder decoder;
    REQUIRE(decoder.Start(file.data(), file.size(), options).ok());
    constexpr int kTop = 2, kLeft = 3, kHeight = 5, kWidth = 4;
    std::vector<uint8_t> pixels(kHeight * kWidth * 3);
    REQUIRE(decoder.DecodeWindow({kTop, kLeft, kHeight, kWidth}, pixels.data()).ok());
    bool same = true;
    for (int y = 0; y < kHeight; ++y) {
      for (int i = 0; i < kWidth * 3; ++i) {
        same &= pixels[y * kWidth * 3 + i] ==
                whole.pixels[((kTop + y) * whole.shape.width + kLeft) * 3 + i];
      }
    }
    CHECK(same);
  }
  CHECK(turned == 14);
}

TEST_CASE("EXIF data that is cut or wrong leaves an image as it is") {
  const Json document = Json::parse(ReadGolden("jpeg_options.json"));
  std::vector<uint8_t> file;
  for (const auto& json : document["cases"]) {
    if (json["kind"] == "upright") file = test::BytesFromHex(json["file"].get<std::string>());
    if (JpegOrientation(file.data(), file.size()) == 6) break;
  }
  REQUIRE(JpegOrientation(file.data(), file.size()) == 6);
  int upright = 0;
  for (size_t size = 0; size < 80; ++size) {
    // On a heap block of its own, so that a sanitizer sees what is read behind.
    const std::vector<uint8_t> cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    upright += JpegOrientation(cut.data(), cut.size()) == 1;
  }
  CHECK(upright >= 40);
  for (size_t i = 0; i < 80; ++i) {
    for (const uint8_t flip : {0x01, 0x80, 0xff}) {
      std::vector<uint8_t> wrong = file;
      wrong[i] ^= flip;
      const int orientation = JpegOrientation(wrong.data(), wrong.size());
      REQUIRE(orientation >= 1);
      REQUIRE(orientation <= 8);
    }
  }
}

}  // namespace
}  // namespace penstock::testing
