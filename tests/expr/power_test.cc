// ** with a negative exponent: of literals a float as in Python, of integers of the data nothing
// that could be meant (error_test.cc).
#include <vector>

#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::expr {
namespace {

// The one value of `text` over s = 2 (int64), u = 3 (uint8) and f = 1 (float32).
template <typename T>
T ValueOf(const std::string& text, DType dtype) {
  CAPTURE(text);
  MapSource map;
  map.stage = "map";
  map.outs = {"y = " + text};
  const auto program = Compile(
      {{"s", {DType::kInt64, {}}}, {"u", {DType::kUint8, {}}}, {"f", {DType::kFloat32, {}}}},
      {map});
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  CHECK(TypeToString((*program)->output()[0].type) == TypeToString({dtype, {}}));
  std::vector<int64_t> s(16, 2);
  std::vector<uint8_t> u(80, 3);
  std::vector<float> f(32, 1);
  const Column in[] = {{reinterpret_cast<uint8_t*>(s.data()), sizeof(int64_t), nullptr},
                       {u.data(), sizeof(uint8_t), nullptr},
                       {reinterpret_cast<uint8_t*>(f.data()), sizeof(float), nullptr}};
  std::vector<T> out(80);
  uint8_t* const outs[] = {reinterpret_cast<uint8_t*>(out.data())};
  Arena arena;
  REQUIRE((*program)->Run(1, in, outs, arena).ok());
  return out[0];
}

TEST_CASE("two literals to a negative power are a literal, as in Python") {
  CHECK(ValueOf<double>("s * 10 ** -3", DType::kFloat64) == 2 * 0.001);
  CHECK(ValueOf<double>("s * (-2) ** -3", DType::kFloat64) == -0.25);
  CHECK(ValueOf<double>("s * -2 ** -2", DType::kFloat64) == -0.5);
  CHECK(ValueOf<double>("s * power(4, 1 - 2)", DType::kFloat64) == 0.5);
  // Without a type of its own.
  CHECK(ValueOf<float>("f * 10 ** -3", DType::kFloat32) == static_cast<float>(0.001));
  CHECK(ValueOf<float>("u * 2 ** -1", DType::kFloat32) == 1.5F);
  // Others stay integers.
  CHECK(ValueOf<int64_t>("s * 10 ** 3", DType::kInt64) == 2000);
  CHECK(ValueOf<uint8_t>("u * 2 ** 0", DType::kUint8) == 3);
}

TEST_CASE("floats may have negative powers, and integers those that are floats") {
  CHECK(ValueOf<double>("s ** -1.0", DType::kFloat64) == 0.5);
  CHECK(ValueOf<float>("float32(s) ** -2", DType::kFloat32) == 0.25F);
  CHECK(ValueOf<float>("(f + 1) ** -1", DType::kFloat32) == 0.5F);
  CHECK(ValueOf<double>("0.5 ** -s", DType::kFloat64) == 4);
  // Of the data: what is left without the fraction.
  CHECK(ValueOf<int64_t>("2 ** -s", DType::kInt64) == 0);
  CHECK(ValueOf<int64_t>("(s - 3) ** -s", DType::kInt64) == 1);
}

}  // namespace
}  // namespace penstock::expr
