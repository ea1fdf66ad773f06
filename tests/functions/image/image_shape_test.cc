// image_shape: the shape that decoding gives, for every golden file and for what is no image.
#include <cstring>

#include "tests/functions/image/row_function.h"
#include "tests/support/golden.h"

namespace penstock::testing {
namespace {

absl::Status Run(const std::string& function, const std::string& bytes,
                 const std::vector<LiteralArgument>& rest, CollectedOutput& out) {
  const auto bound = Bind(function, {DType::kString, {}}, rest);
  REQUIRE(bound.ok());
  const std::vector<uint8_t> data(bytes.begin(), bytes.end());
  const expr::RowValue value{data.data(), data.size(), {}};
  Arena arena;
  return bound->kernel->Run({&value, 1}, arena, out);
}

TEST_CASE("image_shape is the shape of the decoded image, without decoding it") {
  for (const std::string file :
       {"cmyk.jpg", "grey.jpg", "rgb_420.jpg", "rgb_420_odd.jpg", "rgb_444.jpg",
        "rgb_progressive.jpg", "rgb_exif_rotated.jpg", "rgb_tiny.jpg", "lossy_large.webp",
        "lossless_alpha.webp", "notes.webp"}) {
    CAPTURE(file);
    const std::string bytes = ReadGolden("images/" + file);
    CollectedOutput shape, image;
    REQUIRE(Run("image_shape", bytes, {}, shape).ok());
    REQUIRE(Run("decode_image", bytes, {int64_t{0}, false}, image).ok());
    REQUIRE(shape.bytes().size() == 12);
    int32_t sizes[3];
    std::memcpy(sizes, shape.bytes().data(), sizeof(sizes));
    CHECK(Shape(sizes, sizes + 3) == image.shape());
    // Data behind the header is not looked at.
    CollectedOutput cut;
    REQUIRE(Run("image_shape", bytes.substr(0, bytes.size() - 10), {}, cut).ok());
    CHECK((cut.bytes() == shape.bytes()));
  }
  for (const std::string& bytes : {std::string(), std::string("GIF89a"),
                                   std::string("\xff\xd8\xff"), std::string("\x89PNG\r\n\x1a\n")}) {
    CollectedOutput out;
    CHECK(Run("image_shape", bytes, {}, out).code() == absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace penstock::testing
