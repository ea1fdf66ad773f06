// one_hot over many rows at once: wherever the rows of its argument lie, and however many share a
// tile of memory.
#include <cstring>

#include "server/expr/compile.h"
#include "server/expr/number_types.h"
#include "server/expr/program.h"
#include "tests/support/catch.h"

namespace penstock::testing {
namespace {

template <typename Index>
DType IndexType() {
  return sizeof(Index) == 1 ? DType::kInt8 : DType::kInt64;
}

// Rows of one_hot(label, depth, on, off) as float64, beside those that a loop makes.
template <typename Index>
void CheckRows(size_t rows, size_t labels_a_row, size_t stride_values, double on, double off) {
  CAPTURE(rows, labels_a_row, stride_values, on, off, sizeof(Index));
  constexpr int64_t kDepth = 5;
  expr::MapSource map;
  map.stage = "map";
  map.outs = {absl::StrCat("y = one_hot(label, 5, ", on, ", ", off, ", dtype=\"float64\")")};
  const Signature signature = {
      {"label", {IndexType<Index>(), {static_cast<int64_t>(labels_a_row)}}}};
  const auto program = expr::CompileFor(signature, {&map, 1}, expr::Lanes::kVector);
  INFO(program.status().ToString());
  REQUIRE(program.ok());

  // From one below the axis to one behind it, and what reads like an index in its low bits.
  const Index kinds[] = {-1, 0, 1, 2, 3, 4, 5, std::numeric_limits<Index>::min()};
  std::vector<Index> labels(std::max<size_t>(stride_values, 1) * rows + labels_a_row + 64);
  for (size_t i = 0; i < labels.size(); ++i) labels[i] = kinds[(i * 5 + i / 8) % 8];
  constexpr size_t kBehind = 16;
  const size_t row_values = labels_a_row * kDepth;
  std::vector<double> made(rows * row_values + kBehind, 77);
  Column out[] = {{reinterpret_cast<uint8_t*>(made.data()), row_values * sizeof(double), nullptr}};
  Arena arena;
  const std::vector<Column> in = {
      {reinterpret_cast<uint8_t*>(labels.data()), stride_values * sizeof(Index), nullptr}};
  REQUIRE((*program)->Run(static_cast<int>(rows), in, out, arena).ok());
  REQUIRE(out[0].data == reinterpret_cast<uint8_t*>(made.data()));

  std::vector<double> expected;
  for (size_t row = 0; row < rows; ++row) {
    for (size_t i = 0; i < labels_a_row; ++i) {
      for (int64_t at = 0; at < kDepth; ++at)
        expected.push_back(labels[row * stride_values + i] == at ? on : off);
    }
  }
  expected.resize(made.size(), 77);
  const bool same = made == expected;
  CHECK(same);
}

TEST_CASE("one_hot of many rows: scalars and vectors, side by side, apart and the same for all") {
  for (const size_t rows : {1, 2, 409, 410, 1000}) {
    for (const size_t labels_a_row : {1, 3}) {
      for (const size_t stride : {labels_a_row, labels_a_row + 2, size_t{0}}) {
        CheckRows<int64_t>(rows, labels_a_row, stride, 1, 0);
        CheckRows<int8_t>(rows, labels_a_row, stride, 3, -2);
      }
    }
  }
  // A row that is larger than a tile.
  CheckRows<int64_t>(3, 1000, 1001, 1, 0);
}

TEST_CASE("one_hot of integers: both values keep all of their bits") {
  expr::MapSource map;
  map.stage = "map";
  map.outs = {"y = one_hot(label, 2, 9007199254740993, -9007199254740993, dtype=\"int64\")"};
  const Signature signature = {{"label", {DType::kInt64, {}}}};
  const auto program = expr::CompileFor(signature, {&map, 1}, expr::Lanes::kVector);
  INFO(program.status().ToString());
  REQUIRE(program.ok());
  std::vector<int64_t> labels(16, 1), made(16);
  const std::vector<Column> in = {
      {reinterpret_cast<uint8_t*>(labels.data()), sizeof(int64_t), nullptr}};
  Column out[] = {{reinterpret_cast<uint8_t*>(made.data()), 2 * sizeof(int64_t), nullptr}};
  Arena arena;
  REQUIRE((*program)->Run(1, in, out, arena).ok());
  CHECK(made[0] == -9007199254740993);
  CHECK(made[1] == 9007199254740993);
}

}  // namespace
}  // namespace penstock::testing
