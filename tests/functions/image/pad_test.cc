// pad: what numpy.pad puts around a tensor, in every mode, and constants that float64 does not
// hold.
#include <cstring>
#include <limits>

#include "tests/functions/image/row_function.h"

namespace penstock::testing {
namespace {

template <typename T>
std::vector<T> Padded(DType dtype, const std::vector<T>& values, const Shape& shape,
                      const std::vector<LiteralArgument>& rest) {
  const auto bound = Bind("pad", {dtype, shape}, rest);
  INFO(bound.status().ToString());
  REQUIRE(bound.ok());
  const expr::RowValue in[] = {
      {reinterpret_cast<const uint8_t*>(values.data()), values.size() * sizeof(T), shape}};
  CollectedOutput out;
  Arena arena;
  REQUIRE(bound->kernel->Run(in, arena, out).ok());
  std::vector<T> padded(out.bytes().size() / sizeof(T));
  std::memcpy(padded.data(), out.bytes().data(), out.bytes().size());
  return padded;
}

TEST_CASE("pad: margins that are longer than the tensor, in every mode") {
  const struct {
    std::string mode;
    std::vector<int32_t> expected;
  } cases[] = {
      {"constant", {9, 9, 9, 9, 1, 2, 3, 9, 9, 9, 9, 9}},
      {"edge", {1, 1, 1, 1, 1, 2, 3, 3, 3, 3, 3, 3}},
      {"reflect", {1, 2, 3, 2, 1, 2, 3, 2, 1, 2, 3, 2}},
      {"symmetric", {3, 3, 2, 1, 1, 2, 3, 3, 2, 1, 1, 2}},
      {"wrap", {3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2}},
  };
  for (const auto& test : cases) {
    CAPTURE(test.mode);
    CHECK(Padded<int32_t>(DType::kInt32, {1, 2, 3}, {3},
                          {std::vector<int64_t>{4, 5}, test.mode, int64_t{9}}) == test.expected);
  }
}

TEST_CASE("pad: each axis has its own margins") {
  const std::vector<int32_t> values = {1, 2, 3, 4, 5, 6};
  const struct {
    std::string mode;
    std::vector<int32_t> expected;
  } cases[] = {
      {"constant", {0, 0, 0, 0, 0, 1, 2, 3, 0, 0, 4, 5, 6, 0, 0}},
      {"edge", {1, 2, 3, 3, 3, 1, 2, 3, 3, 3, 4, 5, 6, 6, 6}},
      {"reflect", {4, 5, 6, 5, 4, 1, 2, 3, 2, 1, 4, 5, 6, 5, 4}},
      {"symmetric", {1, 2, 3, 3, 2, 1, 2, 3, 3, 2, 4, 5, 6, 6, 5}},
      {"wrap", {4, 5, 6, 4, 5, 1, 2, 3, 1, 2, 4, 5, 6, 4, 5}},
  };
  for (const auto& test : cases) {
    CAPTURE(test.mode);
    CHECK(Padded<int32_t>(DType::kInt32, values, {2, 3},
                          {std::vector<int64_t>{1, 0, 0, 2}, test.mode, {}}) == test.expected);
  }
}

TEST_CASE("pad: an integer constant keeps all of its bits, and saturates") {
  constexpr int64_t kOdd = 9007199254740993;  // 2^53 + 1
  CHECK(Padded<int64_t>(DType::kInt64, {5}, {1}, {int64_t{1}, {}, kOdd}) ==
        std::vector<int64_t>{kOdd, 5, kOdd});
  CHECK(Padded<uint64_t>(DType::kUint64, {5}, {1}, {int64_t{1}, {}, kOdd}) ==
        std::vector<uint64_t>{kOdd, 5, kOdd});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(Padded<int64_t>(DType::kInt64, {5}, {1}, {int64_t{1}, {}, kMost}) ==
        std::vector<int64_t>{kMost, 5, kMost});
  CHECK(Padded<uint8_t>(DType::kUint8, {5}, {1}, {int64_t{1}, {}, int64_t{-3}}) ==
        std::vector<uint8_t>{0, 5, 0});
  CHECK(Padded<uint8_t>(DType::kUint8, {5}, {1}, {int64_t{1}, {}, 300.5}) ==
        std::vector<uint8_t>{255, 5, 255});
  CHECK(Padded<uint8_t>(DType::kBool, {0}, {1}, {int64_t{1}, {}, int64_t{2}}) ==
        std::vector<uint8_t>{1, 0, 1});
}

}  // namespace
}  // namespace penstock::testing
