#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "server/codec/jpeg.h"
#include "server/codec/png_writer.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

const TensorType kContents{DType::kString, {}};

// Arguments behind `contents`.
std::vector<LiteralArgument> Arguments(LiteralArgument channels = {}, LiteralArgument ratio = {},
                                       LiteralArgument fancy_upscaling = {},
                                       LiteralArgument dct_method = {},
                                       LiteralArgument recover = {}, LiteralArgument window = {},
                                       LiteralArgument upright = {}) {
  return {channels, ratio, fancy_upscaling, dct_method, recover, window, upright};
}

absl::Status Run(const expr::BoundRowFunction& bound, const std::string& jpeg,
                 CollectedOutput& out) {
  Arena arena;
  expr::RowValue value;
  value.data = reinterpret_cast<const uint8_t*>(jpeg.data());
  value.bytes = jpeg.size();
  return bound.kernel->Run({&value, 1}, arena, out);
}

TEST_CASE("decode_jpeg: types") {
  const auto any = Bind("decode_jpeg", kContents, Arguments());
  REQUIRE(any.ok());
  CHECK(TypeToString(any->type) == "uint8 (?, ?, ?)");
  CHECK(any->tensor_arguments == std::vector<int>{0});
  const auto rgb = Bind("decode_jpeg", kContents, Arguments(int64_t{3}));
  REQUIRE(rgb.ok());
  CHECK(TypeToString(rgb->type) == "uint8 (?, ?, 3)");
}

// A photo of ImageNet is one.
TEST_CASE("decode_jpeg: a PNG is decoded, whole and in parts") {
  constexpr int64_t kHeight = 5, kWidth = 7;
  std::vector<uint8_t> pixels(kHeight * kWidth * 3);
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 37);
  const std::string png = *EncodePng(pixels.data(), kHeight, kWidth, 3, 1, 6);
  for (const LiteralArgument& channels : {LiteralArgument(), LiteralArgument(int64_t{3})}) {
    const auto bound = Bind("decode_jpeg", kContents, Arguments(channels));
    REQUIRE(bound.ok());
    CollectedOutput out;
    REQUIRE(Run(*bound, png, out).ok());
    CHECK(out.shape() == Shape{kHeight, kWidth, 3});
    CHECK(out.bytes() == pixels);
    const auto reader = bound->kernel->NewPartReader();
    expr::RowValue value;
    value.data = reinterpret_cast<const uint8_t*>(png.data());
    value.bytes = png.size();
    const auto shape = reader->Start({&value, 1});
    REQUIRE(shape.ok());
    CHECK(*shape == Shape{kHeight, kWidth, 3});
    CHECK(!reader->has_rows());
    std::vector<uint8_t> part(2 * 3 * 3);
    REQUIRE(reader->Read(2, 1, 2, 3, part.data()).ok());
    for (size_t y = 0; y < 2; ++y) {
      for (size_t i = 0; i < 9; ++i)
        CHECK(part[y * 9 + i] == pixels[((2 + y) * kWidth + 1) * 3 + i]);
    }
  }
  const auto window = Bind("decode_jpeg", kContents,
                           Arguments({}, {}, {}, {}, {}, std::vector<int64_t>{0, 0, 2, 2}));
  REQUIRE(window.ok());
  CollectedOutput out;
  CHECK(absl::IsDataLoss(Run(*window, png, out)));
}

TEST_CASE("decode_jpeg: what begins with other bytes than a JPEG is none") {
  std::string jpeg = ReadGolden("images/rgb_420_odd.jpg");
  jpeg[2] = '\xa5';
  const auto bound = Bind("decode_jpeg", kContents, Arguments());
  CollectedOutput out;
  CHECK(std::string(Run(*bound, jpeg, out).message()).find("not a JPEG") != std::string::npos);
}

TEST_CASE("decode_jpeg: arguments reach the decoder") {
  struct Case {
    std::vector<LiteralArgument> arguments;
    JpegOptions options;
  };
  const std::vector<Case> cases = {
      {Arguments(), {0, 1, true, false}},
      {Arguments(int64_t{1}), {1, 1, true, false}},
      {Arguments(int64_t{3}, int64_t{2}), {3, 2, true, false}},
      {Arguments({}, {}, false), {0, 1, false, false}},
      {Arguments({}, {}, true, std::string("INTEGER_FAST")), {0, 1, true, false}},
      {Arguments({}, {}, {}, std::string("INTEGER_ACCURATE")), {0, 1, true, true}},
      {Arguments({}, {}, {}, std::string()), {0, 1, true, false}},
  };
  const std::string jpeg = ReadGolden("images/rgb_420_odd.jpg");
  std::vector<uint64_t> hashes;
  for (const Case& test : cases) {
    const auto bound = Bind("decode_jpeg", kContents, test.arguments);
    REQUIRE(bound.ok());
    CollectedOutput out;
    REQUIRE(Run(*bound, jpeg, out).ok());
    JpegDecoder decoder;
    const auto shape =
        decoder.Start(reinterpret_cast<const uint8_t*>(jpeg.data()), jpeg.size(), test.options);
    REQUIRE(shape.ok());
    CHECK(out.times_shaped() == 1);
    CHECK(out.shape() == Shape{shape->height, shape->width, shape->channels});
    std::vector<uint8_t> pixels(shape->bytes());
    REQUIRE(decoder.Decode(pixels.data()).ok());
    CHECK(out.bytes() == pixels);
    hashes.push_back(Fnv1a(pixels.data(), pixels.size()));
  }
  // The arguments that ought to matter do.
  for (const size_t different : {1, 2, 3, 5}) CHECK(hashes[different] != hashes[0]);
}

TEST_CASE("decode_jpeg: wrong arguments") {
  const auto message = [](const TensorType& type, const std::vector<LiteralArgument>& arguments) {
    const auto bound = Bind("decode_jpeg", type, arguments);
    CHECK(bound.status().code() == absl::StatusCode::kInvalidArgument);
    return std::string(bound.status().message());
  };
  CHECK(message({DType::kUint8, {194}}, Arguments()) ==
        "contents: expected a string scalar, found uint8 (194,)");
  CHECK(message({DType::kString, {2}}, Arguments()).find("string scalar") != std::string::npos);
  CHECK(message(kContents, Arguments(int64_t{4})) == "channels: expected 0, 1 or 3 as a constant");
  CHECK(message(kContents, Arguments(std::string("3"))) ==
        "channels: expected 0, 1 or 3 as a constant");
  CHECK(message(kContents, Arguments({}, int64_t{3})) ==
        "ratio: expected 1, 2, 4 or 8 as a constant");
  CHECK(message(kContents, Arguments({}, {}, int64_t{1})) ==
        "fancy_upscaling: expected True or False");
  CHECK(message(kContents, Arguments({}, {}, {}, std::string("FAST"))) ==
        "dct_method: expected \"\", \"INTEGER_FAST\" or \"INTEGER_ACCURATE\"");
  CHECK(message(kContents, Arguments({}, {}, {}, {}, int64_t{1})) ==
        "try_recover_truncated: expected True or False");
  CHECK(message(kContents, Arguments({}, {}, {}, {}, {}, {}, std::string("yes"))) ==
        "exif_orientation: expected True or False");
  for (const std::vector<int64_t>& window :
       {std::vector<int64_t>{1, 2, 3}, {-1, 0, 1, 1}, {0, 0, 0, 1}, {0, 0, 1, 16385}}) {
    CHECK(message(kContents, Arguments({}, {}, {}, {}, {}, window)) ==
          (window == std::vector<int64_t>{0, 0, 0, 1}
               ? "crop_window: expected a height and a width of 1 at least"
               : absl::StrCat("crop_window: expected a list of integers of 0 to 16384, "
                              "[top, left, height, width], found [",
                              absl::StrJoin(window, ", "), "]")));
  }
}

TEST_CASE("decode_jpeg: a window has the pixels that it has in the whole") {
  const std::string jpeg = ReadGolden("images/rgb_420_odd.jpg");
  const auto whole = Bind("decode_jpeg", kContents, Arguments(int64_t{3}));
  CollectedOutput image;
  REQUIRE(Run(*whole, jpeg, image).ok());
  const int64_t height = image.shape()[0], width = image.shape()[1];
  for (const std::vector<int64_t>& window :
       {std::vector<int64_t>{0, 0, height, width}, {1, 2, 3, 4}, {height - 1, width - 1, 1, 1}}) {
    const auto bound =
        Bind("decode_jpeg", kContents, Arguments(int64_t{3}, {}, {}, {}, {}, window));
    REQUIRE(bound.ok());
    CHECK(bound->type.shape == Shape{window[2], window[3], 3});
    CollectedOutput part;
    REQUIRE(Run(*bound, jpeg, part).ok());
    std::vector<uint8_t> want;
    for (int64_t y = window[0]; y < window[0] + window[2]; ++y) {
      const auto row = image.bytes().begin() + (y * width + window[1]) * 3;
      want.insert(want.end(), row, row + window[3] * 3);
    }
    CHECK((part.bytes() == want));
  }
  const auto beyond = Bind("decode_jpeg", kContents,
                           Arguments({}, {}, {}, {}, {}, std::vector<int64_t>{1, 0, height, 1}));
  CollectedOutput out;
  CHECK(std::string(Run(*beyond, jpeg, out).message()).find("crop window outside of the image") ==
        0);
}

TEST_CASE("decode_jpeg: bad data is the row's error") {
  const auto bound = Bind("decode_jpeg", kContents, Arguments(int64_t{3}));
  REQUIRE(bound.ok());
  const std::string jpeg = ReadGolden("images/rgb_420_odd.jpg");
  for (const std::string& bad : {std::string(), std::string("GIF89a"), jpeg.substr(0, 700)}) {
    CollectedOutput out;
    CHECK(Run(*bound, bad, out).code() == absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace penstock::testing
