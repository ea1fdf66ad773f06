// Tensors of every kind through the C++ wrapper and the C interface, against a kinds_server with
// known bytes.

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/penstock.hpp"
#include "tests/support/all_kinds.h"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace {

using penstock::Batch;
using penstock::Counted;
using penstock::CountedStrings;
using penstock::Loader;
using penstock::ServerProcess;
using penstock::Splits;

std::vector<std::string> ToStrings(const penstock::Strings& strings) {
  return {strings.begin(), strings.end()};
}
template <typename T>
std::vector<T> ToVector(std::span<const T> values) {
  return {values.begin(), values.end()};
}

// Compares every tensor with what tests/support/all_kinds.h says.
void CheckBatch(const Batch& batch, uint64_t step, int64_t rows) {
  REQUIRE(batch.step() == step);
  REQUIRE(batch.rows() == rows);
  CHECK(batch.cursor() == "cursor-" + std::to_string(step));
  const int64_t start = static_cast<int64_t>(step);
  CHECK(batch["x"].values<float>().size() == static_cast<size_t>(2 * rows));
  CHECK(batch["x"].values<float>()[3] == static_cast<float>(10 * step + 101));
  CHECK(batch["half"].bytes().size() == static_cast<size_t>(2 * rows));
  CHECK(batch["name"].shape()[0] == rows);
  CHECK_FALSE(batch["name"].dynamic());
  CHECK(batch["name"].strings().size() == static_cast<size_t>(rows));
  CHECK(batch["name"].strings()[0].empty());
  CHECK(batch["name"].strings()[1] == std::to_string(step) + "/1");
  CHECK(batch["note"].shape().empty());
  CHECK(ToStrings(batch["note"].strings()) ==
        std::vector<std::string>{"note " + std::to_string(step)});
  CHECK(ToVector(batch["words"].shape()) == std::vector<int64_t>{rows, start % 3});
  CHECK(batch["words"].dynamic());
  CHECK(ToStrings(batch["words"].strings()) == CountedStrings(rows * (start % 3), "w"));
  CHECK(ToVector(batch["crop"].shape()) == std::vector<int64_t>{rows, 1 + start % 4, 3});
  CHECK(batch["crop"].values<uint8_t>()[2] == (start + 2) % 251);
  const auto ids = Splits(rows, [&](int64_t row) { return (start + row) % 4; });
  CHECK(batch["ids"].ragged_rank() == 1);
  CHECK(ToVector(batch["ids"].shape()) == std::vector<int64_t>{rows, -1});
  CHECK(ToVector(batch["ids"].row_splits()) == ids);
  CHECK(ToVector(batch["ids"].values<int64_t>()) == Counted<int64_t>(ids.back(), 100 * start));
  const auto boxes = Splits(rows, [](int64_t row) { return row % 3; });
  CHECK(ToVector(batch["boxes"].values<float>()) == Counted<float>(2 * boxes.back(), start));
  const auto tokens = Splits(boxes.back(), [](int64_t i) { return i % 2 + 1; });
  CHECK(batch["tokens"].ragged_rank() == 2);
  CHECK(ToVector(batch["tokens"].row_splits(0)) == boxes);
  CHECK(ToVector(batch["tokens"].row_splits(1)) == tokens);
  CHECK(ToVector(batch["tokens"].values<int32_t>()) == Counted<int32_t>(tokens.back(), start));
  CHECK(ToStrings(batch["paths"].strings()) == CountedStrings(tokens.back(), "p"));
  CHECK(ToVector(batch["paths"].row_splits(1)) == tokens);
}

TEST_CASE("every kind arrives in place, in full and in short batches") {
  ServerProcess server(KINDS_SERVER, {"--steps", "40", "--last-rows", "2"});
  Loader loader("kinds", server.socket());
  CHECK(loader.structure().empty());
  uint64_t step = 0;
  for (const Batch& batch : loader) {
    CheckBatch(batch, step, step == 39 ? 2 : 5);
    CHECK_FALSE(batch.is_copy());
    ++step;
  }
  CHECK(step == 40);
}

TEST_CASE("rows that fill a last batch up are told from its elements, in copies too") {
  for (const uint32_t valid : {2u, 0u, 77u}) {
    ServerProcess server(KINDS_SERVER, {"--steps", "9", "--last-valid", std::to_string(valid)});
    Loader loader("kinds", server.socket());
    std::vector<Batch> kept;
    while (std::optional<Batch> batch = loader.Next()) kept.push_back(std::move(*batch));
    REQUIRE(kept.size() == 9);
    CHECK(kept.back().is_copy());
    for (size_t step = 0; step < kept.size(); ++step) {
      CheckBatch(kept[step], step, 5);
      // More than there are rows is not believed.
      CHECK(kept[step].valid() == (step == 8 ? std::min(valid, 5u) : 5));
    }
  }
}

TEST_CASE("copies hold every part, their cursor too, after the loader is gone") {
  ServerProcess server(KINDS_SERVER, {"--steps", "9", "--last-rows", "3"});
  std::vector<Batch> kept;
  {
    Loader loader("kinds", server.socket());
    while (std::optional<Batch> batch = loader.Next()) kept.push_back(std::move(*batch));
  }
  REQUIRE(kept.size() == 9);
  CHECK(kept.back().is_copy());
  for (size_t step = 0; step < kept.size(); ++step) CheckBatch(kept[step], step, step == 8 ? 3 : 5);
}

TEST_CASE("the shape that is known before the first batch has -1 where the data tells") {
  ServerProcess server(KINDS_SERVER, {"--structure", "{\"all\":[null]}"});
  penstock_loader* loader = nullptr;
  REQUIRE(penstock_attach("kinds", server.socket().c_str(), nullptr, &loader) == PENSTOCK_OK);
  CHECK(std::string(penstock_structure(loader)) == "{\"all\":[null]}");
  const penstock_tensor* crop = penstock_tensor_info(loader, 6);
  CHECK(crop->shape[0] == 5);
  CHECK(crop->shape[1] == -1);
  CHECK(crop->data == nullptr);
  CHECK(crop->bytes == 0);
  CHECK(penstock_tensor_info(loader, 3)->kind == PENSTOCK_KIND_STRING);
  CHECK(penstock_tensor_info(loader, 10)->kind == PENSTOCK_KIND_RAGGED);
  CHECK(penstock_tensor_info(loader, 10)->dtype == PENSTOCK_STRING);
  penstock_detach(loader);
}

TEST_CASE("what a tensor has not is an error with a code") {
  ServerProcess server(KINDS_SERVER);
  Loader loader("kinds", server.socket());
  const Batch batch = *loader.Next();
  CHECK_THROWS_AS(batch["x"].strings(), penstock::Error);
  CHECK_THROWS_AS(batch["x"].offsets(), penstock::Error);
  CHECK_THROWS_AS(batch["name"].values<uint8_t>(), penstock::Error);
  CHECK_THROWS_AS(batch["name"].row_splits(), penstock::Error);
  CHECK_THROWS_AS(batch["ids"].row_splits(1), penstock::Error);
  CHECK_THROWS_AS(batch["name"].strings()[5], penstock::Error);
}

TEST_CASE("a string whose offsets point outside is an error, not a crash") {
  const int64_t offsets[] = {0, 3, 2, INT64_MAX, -1, 5};
  penstock_tensor tensor = {};
  tensor.name = "t";
  tensor.dtype = PENSTOCK_STRING;
  tensor.data = "abcde";
  tensor.bytes = 5;
  tensor.offsets = offsets;
  tensor.num_strings = 5;
  const penstock::Strings strings(&tensor);
  CHECK(strings[0] == "abc");
  for (const size_t index : {1, 2, 3, 4}) CHECK_THROWS_AS(strings[index], penstock::Error);
}

}  // namespace
