#include "base/row_shape.h"

#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

TEST_CASE("a row's unknown axes are those of the column") {
  const std::vector<int64_t> dims = {2, 3, 3, 0, 7, 3};
  Column column;
  column.dims = dims.data();
  const TensorType type{DType::kUint8, {kUnknownSize, kUnknownSize, 3}};
  CHECK(RowDims(type, column, 0) == Shape{2, 3, 3});
  CHECK(RowDims(type, column, 1) == Shape{0, 7, 3});
}

TEST_CASE("a row of known shape needs nothing of the column") {
  CHECK(RowDims({DType::kFloat32, {8, 8}}, Column{}, 5) == Shape{8, 8});
  CHECK(RowDims({DType::kString, {}}, Column{}, 0) == Shape{});
}

TEST_CASE("which shapes a type allows") {
  CHECK(HasUnknownAxes({4, kUnknownSize}));
  CHECK_FALSE(HasUnknownAxes({4, 0}));
  CHECK_FALSE(HasUnknownAxes({}));
  CHECK(FitsShape({kUnknownSize, 3}, {0, 3}));
  CHECK_FALSE(FitsShape({kUnknownSize, 3}, {3, 2}));
  CHECK_FALSE(FitsShape({kUnknownSize}, {1, 1}));
  CHECK(FitsShape({}, {}));
}

}  // namespace
}  // namespace penstock
