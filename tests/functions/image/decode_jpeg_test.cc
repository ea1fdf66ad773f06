#include <string>
#include <vector>

#include "server/codec/jpeg.h"
#include "tests/functions/image/row_function.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

const TensorType kContents{DType::kString, {}};

// Arguments behind `contents`.
std::vector<LiteralArgument> Arguments(LiteralArgument channels = {}, LiteralArgument ratio = {},
                                       LiteralArgument fancy_upscaling = {},
                                       LiteralArgument dct_method = {}) {
  return {channels, ratio, fancy_upscaling, dct_method};
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
