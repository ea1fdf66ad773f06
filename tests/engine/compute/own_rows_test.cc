#include "server/engine/compute/own_rows.h"

#include <cstring>
#include <string>
#include <vector>

#include "base/packed_row.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

// The op's row of one element of one feature.
RowBytes Own(const TensorType& type, const RowBytes& row, const int64_t* dims, World world,
             Arena& arena, const int64_t** own_dims = nullptr) {
  const auto op = MakeOwnRows({{"x", type}}, 5, world);
  Column in, out;
  in.rows = &row;
  in.dims = dims;
  REQUIRE(op->Run(1, {&in, 1}, {&out, 1}, arena).ok());
  if (own_dims != nullptr) *own_dims = out.dims;
  return {out.row(0), out.row_size(0)};
}

std::vector<int64_t> Numbers(const PackedValues& values) {
  std::vector<int64_t> numbers(values.count);
  if (!numbers.empty()) std::memcpy(numbers.data(), values.bytes, values.size);
  return numbers;
}

TEST_CASE(
    "a feature is divided where its first axis has the batch's rows, or as many as the data "
    "tells") {
  const auto type = [](Shape shape) { return TensorType{DType::kInt64, std::move(shape)}; };
  CHECK(IsDivided(type({5}), 5));
  CHECK(IsDivided(type({5, 3}), 5));
  CHECK(IsDivided(type({kUnknownSize, 3}), 5));
  CHECK(IsDivided(type({kUnknownSize}), -1));
  CHECK_FALSE(IsDivided(type({}), 5));
  CHECK_FALSE(IsDivided(type({3, 5}), 5));
  CHECK_FALSE(IsDivided(type({5}), -1));
  const auto op =
      MakeOwnRows({{"a", type({5, 2})}, {"b", type({2, 5})}, {"c", type({-1, 5})}}, 5, {2, 1});
  CHECK(op->output()[0].type.shape == Shape{3, 2});
  CHECK(op->output()[1].type.shape == Shape{2, 5});
  CHECK(op->output()[2].type.shape == Shape{-1, 5});
}

TEST_CASE("rows of numbers are a part of the whole, of whatever size the data tells") {
  Arena arena;
  std::vector<int64_t> values;
  for (int64_t i = 0; i < 14; ++i) values.push_back(i);
  const RowBytes row{reinterpret_cast<const uint8_t*>(values.data()), values.size() * 8};
  const int64_t dims[] = {7, 2};
  const int64_t* own_dims = nullptr;
  const RowBytes own = Own({DType::kInt64, {kUnknownSize, 2}}, row, dims, {3, 1}, arena, &own_dims);
  CHECK(own_dims[0] == 2);
  CHECK(own_dims[1] == 2);
  REQUIRE(own.size == 4 * 8);
  CHECK(own.data == row.data + 4 * 8);
}

TEST_CASE("sparse values in any order go to the host that has their row") {
  Arena arena;
  const std::vector<int64_t> sizes{5, 3}, indices{4, 0, 0, 1, 2, 2, 1, 0, 2, 0},
      numbers{40, 1, 22, 10, 20};
  PackedValues values;
  values.bytes = reinterpret_cast<const uint8_t*>(numbers.data());
  values.size = numbers.size() * 8;
  values.count = numbers.size();
  const TensorType type{DType::kInt64, {5, 3}, RowForm::kPackedSparse};
  const RowBytes row = PackSparse(sizes, indices, values, arena);
  const World world{2, 1};  // rows 2 to 4
  const RowBytes own = Own(type, row, nullptr, world, arena);
  const SparseRow sparse = ReadSparseRow(type, own);
  CHECK(std::vector<int64_t>(sparse.sizes.begin(), sparse.sizes.end()) ==
        std::vector<int64_t>{3, 3});
  CHECK(std::vector<int64_t>(sparse.indices.begin(), sparse.indices.end()) ==
        std::vector<int64_t>{2, 0, 0, 2, 0, 0});
  CHECK(Numbers(sparse.values) == std::vector<int64_t>{40, 22, 20});
}

TEST_CASE("of a ragged row each axis begins anew") {
  Arena arena;
  const std::vector<std::vector<int64_t>> splits{{0, 2, 2, 3, 5}, {0, 1, 3, 3, 4, 6}};
  const std::vector<int64_t> numbers{0, 1, 2, 3, 4, 5};
  PackedValues values;
  values.bytes = reinterpret_cast<const uint8_t*>(numbers.data());
  values.size = numbers.size() * 8;
  values.count = numbers.size();
  const TensorType type{
      DType::kInt64, {kUnknownSize, kUnknownSize, kUnknownSize}, RowForm::kPackedRagged};
  const RowBytes row = PackRagged(splits, values, arena);
  const RowBytes own = Own(type, row, nullptr, {2, 1}, arena);
  const RaggedRow ragged = ReadRaggedRow(type, own);
  REQUIRE(ragged.splits.size() == 2);
  CHECK(std::vector<int64_t>(ragged.splits[0].begin(), ragged.splits[0].end()) ==
        std::vector<int64_t>{0, 1, 3});
  CHECK(std::vector<int64_t>(ragged.splits[1].begin(), ragged.splits[1].end()) ==
        std::vector<int64_t>{0, 0, 1, 3});
  CHECK(Numbers(ragged.values) == std::vector<int64_t>{3, 4, 5});
}

}  // namespace
}  // namespace penstock
