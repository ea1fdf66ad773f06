// Label images to classes: against the definition, colour by colour.
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "tests/functions/image/row_function.h"

namespace penstock::testing {
namespace {

using Colours = std::vector<std::vector<int64_t>>;

struct Mapped {
  absl::Status status;
  std::vector<uint8_t> bytes;
  TensorType type;
};

// `of_data`: only the row tells the colours.
Mapped Map(const std::vector<uint8_t>& pixels, const Shape& shape, const Colours& colours,
           const std::vector<LiteralArgument>& rest, const Shape& known, bool of_data = false) {
  const expr::FunctionEntry* const entry = expr::FindFunction("color_map");
  std::vector<expr::Argument> arguments(2);
  arguments[0].type = {DType::kUint8, known};
  arguments[1].type = {DType::kInt64, {static_cast<int64_t>(colours.size()), 3}};
  std::vector<uint8_t> table;
  for (const auto& colour : colours) {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(colour.data());
    table.insert(table.end(), bytes, bytes + colour.size() * sizeof(int64_t));
  }
  if (!of_data) arguments[1].constant = &table;
  for (const LiteralArgument& literal : rest) {
    expr::Argument argument;
    argument.given = literal.given;
    argument.literal = literal.given ? &literal.value : nullptr;
    arguments.push_back(argument);
  }
  const auto bound = std::get<expr::RowFunction>(entry->function).bind(arguments);
  if (!bound.ok()) return {bound.status(), {}, {}};
  const expr::RowValue values[] = {{pixels.data(), pixels.size(), shape},
                                   {table.data(), table.size(), arguments[1].type.shape}};
  CollectedOutput out;
  Arena arena;
  const absl::Status status = bound->kernel->Run(values, arena, out);
  TensorType type = bound->type;
  if (out.times_shaped() > 0) type.shape = out.shape();
  return {status, out.bytes(), type};
}

const Colours kColours = {{0, 0, 0}, {255, 0, 0}, {0, 255, 0}, {1, 2, 3}, {255, 255, 255}};

// An image of those colours, of stretches and of single pixels.
std::vector<int> Classes(int64_t count) {
  std::vector<int> classes;
  uint32_t state = 3;
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525 + 1013904223;
    classes.push_back(i > 0 && i % 7 < 4 ? classes.back() : static_cast<int>(state >> 16) % 5);
  }
  return classes;
}

std::vector<uint8_t> Paint(const std::vector<int>& classes) {
  std::vector<uint8_t> pixels;
  for (const int index : classes) {
    for (const int64_t value : kColours[static_cast<size_t>(index)])
      pixels.push_back(static_cast<uint8_t>(value));
  }
  return pixels;
}

TEST_CASE("color_map gives each pixel its class, as one-hot or as index") {
  constexpr int64_t kHeight = 31, kWidth = 67;
  const std::vector<int> classes = Classes(kHeight * kWidth);
  const std::vector<uint8_t> pixels = Paint(classes);
  const Shape shape = {kHeight, kWidth, 3};
  for (const Shape& known : {shape, Shape{kUnknownSize, kUnknownSize, 3},
                             Shape{kUnknownSize, kUnknownSize, kUnknownSize}}) {
    const Mapped wide = Map(pixels, shape, kColours, {{}, {}, {}}, known);
    REQUIRE(wide.status.ok());
    CHECK(TypeToString(wide.type) == "float32 (31, 67, 5)");
    std::vector<float> ones(classes.size() * 5);
    for (size_t i = 0; i < classes.size(); ++i) ones[i * 5 + static_cast<size_t>(classes[i])] = 1;
    REQUIRE(wide.bytes.size() == ones.size() * 4);
    CHECK(std::memcmp(wide.bytes.data(), ones.data(), wide.bytes.size()) == 0);

    const Mapped narrow = Map(pixels, shape, kColours, {{}, {}, {std::string("uint8")}}, known);
    REQUIRE(narrow.status.ok());
    CHECK(TypeToString(narrow.type) == "uint8 (31, 67, 5)");
    const std::vector<uint8_t> bytes(ones.begin(), ones.end());
    CHECK((narrow.bytes == bytes));

    const Mapped index = Map(pixels, shape, kColours, {{false}, {}, {}}, known);
    REQUIRE(index.status.ok());
    CHECK(TypeToString(index.type) == "uint8 (31, 67)");
    const std::vector<uint8_t> indices(classes.begin(), classes.end());
    CHECK((index.bytes == indices));
  }
}

TEST_CASE("A colour outside the table is an error with its place, or a class") {
  std::vector<uint8_t> pixels = Paint(Classes(20));
  pixels[3 * 13] = 77;
  const Shape shape = {4, 5, 3};
  const Mapped refused = Map(pixels, shape, kColours, {{}, {}, {}}, shape);
  CHECK(refused.status.code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(refused.status.message()),
             Catch::Contains("not in the table") && Catch::Contains("row 2, column 3"));
  const Mapped counted = Map(pixels, shape, kColours, {{false}, {int64_t{4}}, {}}, shape);
  REQUIRE(counted.status.ok());
  CHECK(counted.bytes[13] == 4);
}

TEST_CASE("color_map refuses colours that no pixel has") {
  const Shape shape = {4, 5, 3};
  const std::vector<uint8_t> pixels(60);
  for (const int64_t number :
       {int64_t{256}, int64_t{-1}, int64_t{1} << 32, std::numeric_limits<int64_t>::min()}) {
    CAPTURE(number);
    const Colours colours = {{0, 0, 0}, {1, number, 3}};
    const std::string message =
        absl::StrCat("colors: expected numbers of 0 to 255, found ", number);
    const Mapped constant = Map(pixels, shape, colours, {{}, {}, {}}, shape);
    CHECK(constant.status == absl::InvalidArgumentError(message));
    const Mapped of_data = Map(pixels, shape, colours, {{}, {}, {}}, shape, /*of_data=*/true);
    CHECK(of_data.status == absl::DataLossError(message));
  }
  CHECK(Map(pixels, shape, {{0, 0, 0}, {255, 255, 255}}, {{}, {}, {}}, shape).status.ok());
}

TEST_CASE("color_map refuses what is no table and no label image") {
  const Shape shape = {4, 5, 3};
  const std::vector<uint8_t> pixels(60);
  CHECK_FALSE(Map(pixels, shape, Colours(257, {1, 2, 3}), {{}, {}, {}}, shape).status.ok());
  CHECK_FALSE(Map(pixels, shape, {}, {{}, {}, {}}, shape).status.ok());
  CHECK_FALSE(Map(pixels, shape, kColours, {{}, {int64_t{5}}, {}}, shape).status.ok());
  CHECK_FALSE(Map(pixels, shape, kColours, {{}, {}, {std::string("int32")}}, shape).status.ok());
  CHECK_FALSE(Map(pixels, {4, 5, 4}, kColours, {{}, {}, {}}, {4, 5, 4}).status.ok());
  // As many colours as there may be, of which many meet in the table of slots.
  Colours many;
  std::vector<uint8_t> strip;
  for (int64_t i = 0; i < 256; ++i) {
    many.push_back({i, 0, (i * 37) % 256});
    for (const int64_t value : many.back()) strip.push_back(static_cast<uint8_t>(value));
  }
  const Mapped all = Map(strip, {1, 256, 3}, many, {{false}, {}, {}}, {1, 256, 3});
  REQUIRE(all.status.ok());
  for (size_t i = 0; i < 256; ++i) CHECK(all.bytes[i] == i);
}

}  // namespace
}  // namespace penstock::testing
