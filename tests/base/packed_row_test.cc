#include "base/packed_row.h"

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

std::string Words(const std::vector<int64_t>& words, const std::string& behind = "") {
  std::string bytes(reinterpret_cast<const char*>(words.data()), words.size() * sizeof(int64_t));
  return bytes + behind;
}

bool IsRow(const TensorType& type, const std::string& bytes) {
  // On the heap, with nothing behind it.
  const std::vector<uint8_t> row(bytes.begin(), bytes.end());
  return IsPackedRow(type, row.data(), row.size());
}

TensorType Ragged(DType dtype, Shape shape) {
  return {dtype, std::move(shape), RowForm::kPackedRagged};
}
TensorType Sparse(DType dtype, Shape shape) {
  return {dtype, std::move(shape), RowForm::kPackedSparse};
}

const int64_t kAny = kUnknownSize;
const int64_t kMost = INT64_MAX;

TEST_CASE("Rows that are ragged themselves are told from other bytes") {
  const TensorType one = Ragged(DType::kInt64, {kAny, kAny});
  CHECK(IsRow(one, Words({2, 0, 1, 3, 7, 8, 9})));
  CHECK(IsRow(one, Words({0, 0})));
  const std::vector<std::vector<int64_t>> kWrong = {
      {},                          // nothing
      {2},                         // no row splits
      {2, 0, 1},                   // too few of them
      {-1, 0},                     // a negative number of rows
      {kMost, 0, 1},               // more than there are bytes
      {kMost / 8, 0, 1},           // whose bytes wrap
      {1, 1, 3, 7, 8, 9},          // does not begin with 0
      {2, 0, 2, 1, 7},             // falls
      {2, 0, -1, 0},               // is negative
      {1, 0, 3, 7, 8},             // too few values
      {1, 0, 1, 7, 8},             // too many
      {1, 0, kMost, 7},            // many more than there are bytes
      {1, 0, int64_t{1} << 61, 7}  // whose bytes wrap
  };
  for (const auto& words : kWrong) {
    INFO(words.size());
    CHECK_FALSE(IsRow(one, Words(words)));
  }
  CHECK_FALSE(IsRow(one, Words({1, 0, 1, 7}, "x")));
}

TEST_CASE(
    "The rows of an inner axis are the items of the one around it, and sizes that are known "
    "count") {
  const TensorType two = Ragged(DType::kUint8, {kAny, kAny, kAny});
  CHECK(IsRow(two, Words({2, 0, 1, 3, 3, 0, 1, 1, 2}, "ab")));
  CHECK_FALSE(IsRow(two, Words({2, 0, 1, 2, 3, 0, 1, 1, 2}, "ab")));
  CHECK_FALSE(IsRow(two, Words({2, 0, 1, 3, 3, 0, 1, 1, 2}, "abc")));
  const TensorType known = Ragged(DType::kUint8, {2, kAny, 3});
  CHECK(IsRow(known, Words({2, 0, 1, 2}, "abcdef")));
  CHECK_FALSE(IsRow(known, Words({2, 0, 1, 2}, "abcde")));
  CHECK_FALSE(IsRow(known, Words({1, 0, 2}, "abcdef")));
  // 3 times that leaves 63 bits.
  CHECK_FALSE(IsRow(known, Words({2, 0, 1, kMost / 2}, "")));
}

TEST_CASE("Strings in packed rows have as many bytes as their sizes say") {
  const TensorType type = Ragged(DType::kString, {kAny, kAny});
  const std::string sizes("\1\0\0\0\2\0\0\0", 8);
  CHECK(IsRow(type, Words({1, 0, 2}, sizes + "abc")));
  CHECK_FALSE(IsRow(type, Words({1, 0, 2}, sizes + "ab")));
  CHECK_FALSE(IsRow(type, Words({1, 0, 2}, sizes + "abcd")));
  CHECK_FALSE(IsRow(type, Words({1, 0, 2}, sizes.substr(0, 7))));
  CHECK_FALSE(IsRow(type, Words({1, 0, int64_t{1} << 62}, sizes + "abc")));
}

TEST_CASE("Rows that are sparse themselves are told from other bytes") {
  const TensorType type = Sparse(DType::kUint8, {5, 6});
  CHECK(IsRow(type, Words({2, 5, 6, 0, 1, 4, 5}, "ab")));
  CHECK(IsRow(type, Words({0, 5, 6})));
  CHECK_FALSE(IsRow(type, Words({0, 5})));
  CHECK_FALSE(IsRow(type, Words({0, -5, 6})));
  CHECK_FALSE(IsRow(type, Words({-1, 5, 6})));
  CHECK_FALSE(IsRow(type, Words({3, 5, 6, 0, 1, 4, 5}, "ab")));
  CHECK_FALSE(IsRow(type, Words({2, 5, 6, 0, 1, 4, 5}, "a")));
  CHECK_FALSE(IsRow(type, Words({kMost, 5, 6, 0, 1, 4, 5}, "ab")));
  CHECK_FALSE(IsRow(type, Words({kMost / 16 + 2, 5, 6, 0, 1, 4, 5}, "ab")));
  CHECK(IsRow(Sparse(DType::kString, {5}), Words({1, 5, 0}, std::string("\1\0\0\0a", 5))));
  CHECK_FALSE(IsRow(Sparse(DType::kString, {5}), Words({1, 5, 0}, std::string("\2\0\0\0a", 5))));
}

}  // namespace
}  // namespace penstock
