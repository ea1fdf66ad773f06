// Integers of a call that are constants or values of the data: which arguments are taken, and what
// is read of a row.
#include "server/expr/data_integers.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/expr/scalar_type.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

template <typename T>
RowValue ValueOf(const std::vector<T>& values, Shape shape) {
  return {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T),
          std::move(shape)};
}

Argument OfData(DType dtype, Shape shape) {
  Argument argument;
  argument.type = {dtype, std::move(shape)};
  return argument;
}

Argument Constant(const Literal* literal) {
  Argument argument;
  argument.type = ScalarType(DType::kInt64);
  argument.literal = literal;
  return argument;
}

TEST_CASE("integers of the data stand among constants in the order of the call") {
  const Literal seven = int64_t{7}, pair = std::vector<int64_t>{1, 2};
  const std::vector<Argument> arguments = {OfData(DType::kUint8, {2}), Constant(&seven),
                                           OfData(DType::kInt16, {}), Constant(&pair)};
  DataIntegers integers;
  REQUIRE(integers.AddList(arguments, 3, "pair", "[a, b]", 2, 0, 9).ok());
  REQUIRE(integers.Add(arguments, 2, "traced", -5, 5).ok());
  REQUIRE(integers.Add(arguments, 1, "seven", 0, 9).ok());
  REQUIRE(integers.AddList(arguments, 0, "list", "[a, b]", 2, 0, 255).ok());
  CHECK_FALSE(integers.all_constant());
  CHECK(integers.positions() == std::vector<int>{2, 0});
  CHECK(integers.size(0) == 1);
  CHECK(integers.size(1) == 2);
  CHECK(integers.size(2) == kUnknownSize);
  CHECK(integers.size(3) == 7);
  CHECK(integers.size(5) == kUnknownSize);
  const std::vector<int16_t> traced = {-5};
  const std::vector<uint8_t> list = {0, 255};
  const std::vector<RowValue> row = {ValueOf(traced, {}), ValueOf(list, {2})};
  IntegersRead read;
  REQUIRE(integers.Read(row, &read).ok());
  CHECK(std::vector<int64_t>(read.begin(), read.end()) ==
        std::vector<int64_t>{1, 2, -5, 7, 0, 255});
}

TEST_CASE("integers of the data that do not fit are errors of their row") {
  DataIntegers integers;
  const std::vector<Argument> arguments = {OfData(DType::kUint64, {}),
                                           OfData(DType::kInt32, {kUnknownSize})};
  REQUIRE(integers.Add(arguments, 0, "height", 1, 100).ok());
  REQUIRE(integers.AddList(arguments, 1, "window", "[a, b]", 2, 0, 9).ok());
  const auto message = [&](uint64_t height, const std::vector<int32_t>& window) {
    const std::vector<uint64_t> heights = {height};
    const std::vector<RowValue> row = {ValueOf(heights, {}),
                                       ValueOf(window, {static_cast<int64_t>(window.size())})};
    IntegersRead read;
    const absl::Status status = integers.Read(row, &read);
    CHECK((status.ok() || status.code() == absl::StatusCode::kDataLoss));
    return std::string(status.message());
  };
  CHECK(message(100, {0, 9}).empty());
  CHECK(message(0, {0, 9}) == "height: expected 1 to 100, found 0");
  CHECK(message(UINT64_MAX, {0, 9}) == "height: expected 1 to 100, found 18446744073709551615");
  CHECK(message(1, {0, 10}) == "window: expected 0 to 9, found 10");
  CHECK(message(1, {0}) == "window: expected 2 integers, found (1,)");
  CHECK(message(1, {0, 1, 2}) == "window: expected 2 integers, found (3,)");
}

TEST_CASE("an integer beyond int64 is no negative one") {
  DataIntegers integers;
  const std::vector<Argument> arguments = {OfData(DType::kUint64, {})};
  REQUIRE(integers.Add(arguments, 0, "subscript", INT64_MIN, INT64_MAX).ok());
  for (const uint64_t value : {uint64_t{7}, uint64_t{INT64_MAX}, uint64_t{1} << 63, UINT64_MAX}) {
    const std::vector<uint64_t> values = {value};
    IntegersRead read;
    REQUIRE(integers.Read({ValueOf(values, {})}, &read).ok());
    CHECK(read == IntegersRead{static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX))});
  }
}

TEST_CASE("what is no integer is refused") {
  const Literal half = 0.5, far = int64_t{101}, one = std::vector<int64_t>{1};
  const std::vector<Argument> arguments = {OfData(DType::kFloat32, {}),
                                           OfData(DType::kInt64, {1}),
                                           OfData(DType::kBool, {}),
                                           Constant(&half),
                                           Constant(&far),
                                           OfData(DType::kInt64, {3}),
                                           Constant(&one),
                                           OfData(DType::kString, {2})};
  for (int position = 0; position < 8; ++position) {
    CAPTURE(position);
    DataIntegers integers;
    const absl::Status alone = integers.Add(arguments, position, "side", 1, 100);
    CHECK(alone.code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(alone.message()),
               Catch::Matchers::Contains("side: expected an integer"));
    const absl::Status list =
        integers.AddList(arguments, position, "sides", "[height, width]", 2, 1, 100);
    CHECK(list.code() == absl::StatusCode::kInvalidArgument);
    CHECK(std::string(list.message()) ==
          absl::StrCat("sides: expected a list of integers of 1 to 100, [height, width], found ",
                       position == 6 ? "[1]" : TypeToString(arguments[position].type)));
  }
}

}  // namespace
}  // namespace penstock::expr
