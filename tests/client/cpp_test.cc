// The C++ wrapper against a ring_server with known bytes.
#include <optional>
#include <utility>

#include "client/cpp/penstock.hpp"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace {

using penstock::Batch;
using penstock::Loader;
using penstock::ServerProcess;

TEST_CASE("a range-for sees every batch in order") {
  ServerProcess server(RING_SERVER, {"--steps", "30", "--last-rows", "2"});
  Loader loader("counted", server.socket());
  uint64_t step = 0;
  for (const Batch& batch : loader) {
    REQUIRE(batch.step() == step);
    CHECK(batch.epoch() == step / 10);
    CHECK(batch.cursor() == "cursor-" + std::to_string(step));
    const uint32_t rows = step == 29 ? 2 : 8;
    REQUIRE(batch.rows() == rows);
    REQUIRE(batch["y"].values<int64_t>().size() == rows);
    CHECK(batch["y"].values<int64_t>()[rows - 1] == static_cast<int64_t>(100 * step + rows - 1));
    CHECK(batch["x"].values<float>()[1] == static_cast<float>(1000 * step + 1));
    CHECK(batch["id"].values<uint64_t>()[0] == step);
    CHECK(batch["flag"].values<bool>()[0] == (step % 2 == 1));
    CHECK(batch[1].name() == "y");
    CHECK(batch.size() == 4);
    ++step;
  }
  CHECK(step == 30);
  CHECK(loader.stats().copies == 0);
}

TEST_CASE("a batch outlives its loader") {
  ServerProcess server(RING_SERVER, {"--steps", "3"});
  std::optional<Batch> batch;
  {
    Loader loader("counted", server.socket());
    batch = loader.Next();
  }
  CHECK((*batch)["y"].values<int64_t>()[7] == 7);
}

TEST_CASE("mistakes are errors with a code") {
  ServerProcess server(RING_SERVER, {"--steps", "3"});
  try {
    Loader loader("nothing", server.socket());
    FAIL("attached to a pipeline that does not exist");
  } catch (const penstock::Error& error) {
    CHECK(error.code() == PENSTOCK_NOT_FOUND);
  }
  Loader loader("counted", server.socket());
  Batch batch = *loader.Next();
  CHECK_THROWS_AS(batch["x"].values<double>(), penstock::Error);
  CHECK_THROWS_AS(batch["y"].values<uint64_t>(), penstock::Error);
  CHECK_THROWS_AS(batch["z"], penstock::Error);
  CHECK_THROWS_AS(batch[4], penstock::Error);
}

}  // namespace
