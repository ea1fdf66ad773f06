// Batches of a consumer's own size, in C and C++, against a ring_server with known bytes.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/cpp/penstock.hpp"
#include "tests/support/catch.h"
#include "tests/support/server_process.h"

namespace {

using penstock::Batch;
using penstock::Loader;
using penstock::ServerProcess;

constexpr uint64_t kStepRows = 8;

Loader AttachTo(const ServerProcess& server, uint32_t batch_rows, const std::string& cursor = "",
                uint32_t rank = 0, uint32_t world_size = 1) {
  penstock_attach_options options = Loader::DefaultOptions();
  const std::string socket = server.socket();
  options.pipeline = "counted";
  options.socket = socket.c_str();
  options.batch_rows = batch_rows;
  options.reconnect_seconds = 0;
  options.rank = rank;
  options.world_size = world_size;
  if (world_size > 1) options.mode = PENSTOCK_RANK;
  if (world_size > 1) options.group = "ranks";
  if (!cursor.empty()) {
    options.cursor = cursor.data();
    options.cursor_bytes = static_cast<uint32_t>(cursor.size());
  }
  return Loader(options);
}

// What ring_server writes into row `row` of the whole stream.
void CheckRows(const Batch& batch, uint64_t first, uint64_t rows) {
  REQUIRE(batch.rows() == rows);
  REQUIRE(batch.valid() == rows);
  const auto x = batch["x"].values<float>();
  const auto y = batch["y"].values<int64_t>();
  const auto flag = batch["flag"].values<bool>();
  REQUIRE(x.size() == rows * 4);
  REQUIRE(y.size() == rows);
  REQUIRE(batch["x"].shape()[0] == static_cast<int64_t>(rows));
  int wrong = 0;
  for (uint64_t i = 0; i < rows; ++i) {
    const uint64_t step = (first + i) / kStepRows, row = (first + i) % kStepRows;
    for (uint64_t column = 0; column < 4; ++column) {
      wrong += x[i * 4 + column] != static_cast<float>(1000 * step + 10 * row + column);
    }
    wrong += y[i] != static_cast<int64_t>(100 * step + row);
    wrong += flag[i] != ((step + row) % 2 == 1);
  }
  CHECK(wrong == 0);
}

TEST_CASE("batches of any size have the rows of the stream in order") {
  for (const uint32_t size : {1u, 3u, 4u, 5u, 8u, 11u, 16u, 20u, 100u, 1000u}) {
    CAPTURE(size);
    // 19 steps of 8 rows and one of 3.
    ServerProcess server(RING_SERVER, {"--steps", "20", "--last-rows", "3", "--id", "0"});
    Loader loader = AttachTo(server, size);
    CHECK(penstock_tensor_info(loader.get(), 0)->shape[0] == size);
    uint64_t first = 0, joined = 0;
    while (std::optional<Batch> batch = loader.Next()) {
      CHECK(batch->step() == first / size);
      CHECK(batch->epoch() == first / kStepRows / 10);
      const uint64_t rows = std::min<uint64_t>(size, 155 - first);
      CheckRows(*batch, first, rows);
      const bool crosses = first / kStepRows != (first + rows - 1) / kStepRows;
      CHECK(batch->is_joined() == crosses);
      CHECK(batch->is_copy() == crosses);
      joined += crosses ? 1 : 0;
      first += rows;
    }
    CHECK(first == 155);
    CHECK(loader.stats().copies == 0);
    CHECK(loader.joined() == joined);
    CHECK(loader.stats().leases == 0);
    CHECK(!loader.Next());
  }
}

TEST_CASE("ranks see their part of each batch") {
  for (const uint32_t size : {4u, 6u, 20u, 3u}) {
    for (const uint32_t world : {2u, 5u}) {
      CAPTURE(size, world);
      ServerProcess server(RING_SERVER, {"--steps", "9", "--last-rows", "5", "--id", "0"});
      std::vector<Loader> loaders;
      for (uint32_t rank = 0; rank < world; ++rank)
        loaders.push_back(AttachTo(server, size, "", rank, world));
      for (uint64_t first = 0; first < 69; first += size) {
        const uint64_t rows = std::min<uint64_t>(size, 69 - first);
        for (uint32_t rank = 0; rank < world; ++rank) {
          const std::optional<Batch> batch = loaders[rank].Next();
          REQUIRE(batch);
          CHECK(batch->step() == first / size);
          const uint64_t begin = rank * rows / world, end = (rank + 1) * rows / world;
          CheckRows(*batch, first + begin, end - begin);
        }
      }
      for (Loader& loader : loaders) CHECK(!loader.Next());
    }
  }
}

TEST_CASE("what is kept stays as it is, beyond the share of the ring too") {
  for (const uint32_t size : {4u, 5u, 20u}) {
    CAPTURE(size);
    ServerProcess server(RING_SERVER, {"--steps", "40", "--id", "0"});
    std::vector<Batch> kept;
    {
      Loader loader = AttachTo(server, size);
      while (std::optional<Batch> batch = loader.Next()) kept.push_back(std::move(*batch));
      CHECK((loader.stats().copies > 0) == (size < kStepRows));
    }
    REQUIRE(kept.size() == (320 + size - 1) / size);
    for (uint64_t i = 0; i < kept.size(); ++i)
      CheckRows(kept[i], i * size, std::min<uint64_t>(size, 320 - i * size));
  }
}

TEST_CASE("a wait may end in the middle of a batch that is being joined") {
  ServerProcess server(RING_SERVER, {"--steps", "5", "--hold-at", "2", "--id", "0"});
  Loader loader = AttachTo(server, 20);
  penstock_batch* batch = nullptr;
  CHECK(penstock_ready(loader.get()) == 0);
  for (int i = 0; i < 3; ++i)
    CHECK(penstock_next(loader.get(), 1'000'000, &batch) == PENSTOCK_TIMEOUT);
  CHECK(penstock_ready(loader.get()) == 0);
  server.Go();
  CheckRows(*loader.Next(), 0, 20);
  // Of the rest, that it is there and where it ends turns out without anybody asking for it.
  while (penstock_ready(loader.get()) == 0) {
  }
  CHECK(loader.stats().position == 1);
  REQUIRE(penstock_next(loader.get(), 0, &batch) == PENSTOCK_OK);
  CHECK(loader.stats().position == 2);
  CheckRows(Batch(batch), 20, 20);
  CHECK(penstock_next(loader.get(), PENSTOCK_FOREVER, &batch) == PENSTOCK_END);
  CHECK(penstock_ready(loader.get()) == 0);
}

TEST_CASE("batches that were joined ahead go with their loader") {
  ServerProcess server(RING_SERVER, {"--steps", "50", "--id", "0"});
  for (int i = 0; i < 3; ++i) {
    Loader loader = AttachTo(server, 12);
    while (penstock_ready(loader.get()) == 0) {
    }
  }
}

TEST_CASE("a failed pipeline gives no batch of fewer rows") {
  ServerProcess server(RING_SERVER, {"--steps", "2", "--id", "0", "--end-code", "15",
                                     "--end-message", "bad record"});
  Loader loader = AttachTo(server, 12);
  CheckRows(*loader.Next(), 0, 12);
  for (int i = 0; i < 2; ++i) {
    try {
      loader.Next();
      FAIL("a batch behind the error");
    } catch (const penstock::Error& error) {
      CHECK(error.code() == PENSTOCK_DATA_LOSS);
    }
  }
}

TEST_CASE("what cannot be joined can be divided") {
  ServerProcess server(RING_SERVER, {"--steps", "3"});
  for (const uint32_t size : {3u, 16u}) {
    try {
      AttachTo(server, size);
      FAIL("attached with a size that has to be joined");
    } catch (const penstock::Error& error) {
      CHECK(error.code() == PENSTOCK_FAILED_PRECONDITION);
      CHECK_THAT(error.what(), Catch::Contains("there is one of tensor \"id\" for a whole batch"));
    }
  }
  Loader loader = AttachTo(server, 2);
  CHECK((*loader.Next())["id"].values<uint64_t>()[0] == 0);
  try {
    AttachTo(server, UINT32_MAX);
    FAIL("attached with a size beyond memory");
  } catch (const penstock::Error& error) {
    CHECK(error.code() != PENSTOCK_OK);
  }
}

TEST_CASE("a damaged head of a cursor is refused") {
  ServerProcess server(RING_SERVER, {"--steps", "30", "--id", "0"});
  Loader loader = AttachTo(server, 12);
  const std::string cursor(loader.Next()->cursor());
  REQUIRE(cursor.size() > 32);
  // No step; and neither rows of it nor a number.
  for (const char byte : {'\xff', '\0'}) {
    std::string damaged = cursor;
    damaged.replace(byte == '\0' ? 16 : 8, 8, 8, byte);
    CHECK_THROWS_AS(AttachTo(server, 12, damaged), penstock::Error);
    CHECK_THROWS_AS(loader.Seek(damaged), penstock::Error);
  }
  // A cursor that is refused moves nothing.
  CheckRows(*loader.Next(), 12, 12);
}

}  // namespace
