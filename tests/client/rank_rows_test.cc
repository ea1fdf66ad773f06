// What a rank, or a consumer with batches of its own size, sees of a batch's tensors.
#include "client/c/rank_rows.h"

#include <cstdint>
#include <vector>

#include "tests/support/catch.h"

namespace penstock_client {
namespace {

TEST_CASE("rows of a sparse tensor without a value are those of a sparse tensor") {
  // Of four rows the first and the last have a value each.
  const int64_t indices[] = {0, 2, 3, 1};
  const float values[] = {1.5f, 2.5f};
  for (uint32_t first_row = 0; first_row < 4; ++first_row) {
    int64_t shape[] = {4, 3};
    penstock_tensor tensor = {};
    tensor.kind = PENSTOCK_KIND_SPARSE;
    tensor.ndim = 2;
    tensor.shape = shape;
    tensor.element_bytes = sizeof(float);
    tensor.indices = indices;
    tensor.num_values = 2;
    tensor.data = values;
    tensor.bytes = sizeof values;
    std::vector<std::vector<int64_t>> counted_anew;
    REQUIRE(TakeRows(first_row, 1, &tensor, shape, &counted_anew));
    CHECK(shape[0] == 1);
    CHECK(tensor.num_values == (first_row == 0 || first_row == 3 ? 1 : 0));
    CHECK(tensor.bytes == tensor.num_values * sizeof(float));
    REQUIRE(tensor.indices != nullptr);
    if (first_row == 3) {
      CHECK(tensor.indices[0] == 0);
      CHECK(tensor.indices[1] == 1);
      CHECK(*static_cast<const float*>(tensor.data) == 2.5f);
    }
  }
}

}  // namespace
}  // namespace penstock_client
