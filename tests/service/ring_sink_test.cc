#include "server/service/ring_sink.h"

#include <cstdint>
#include <cstring>

#include "tests/support/catch.h"

namespace penstock {
namespace {

std::vector<BatchTensor> TwoTensors(int64_t rows) {
  return {{"x", {DType::kFloat32, {rows, 3}}, true}, {"n", {DType::kInt64, {rows}}, true}};
}

TEST_CASE("a sink hands out a ring's slots until they are all taken") {
  auto sink = RingSink::Create("p", TwoTensors(5), 3);
  REQUIRE(sink.ok());
  ClaimedSlot slots[4];
  for (int i = 0; i < 3; ++i) {
    REQUIRE((*sink)->TryClaim(&slots[i]));
    REQUIRE(slots[i].tensors.size() == 2);
    for (uint8_t* tensor : slots[i].tensors) {
      CHECK(reinterpret_cast<uintptr_t>(tensor) % 64 == 0);
    }
    // All of both tensors, and the bytes that may be overwritten behind them.
    std::memset(slots[i].tensors[0], 0x5a, 5 * 3 * 4 + 64);
    std::memset(slots[i].tensors[1], 0x5a, 5 * 8 + 64);
  }
  CHECK_FALSE((*sink)->TryClaim(&slots[3]));
  for (uint64_t step = 0; step < 3; ++step) {
    (*sink)->Publish(slots[step], {.step = step, .epoch = 0, .rows = 5});
  }
  CHECK((*sink)->writer().published() == 3);
  // Nobody has read them.
  CHECK_FALSE((*sink)->TryClaim(&slots[3]));
}

TEST_CASE("a sink remembers how the producer ended, and Close does not change it") {
  auto sink = RingSink::Create("p", TwoTensors(5), 3);
  REQUIRE(sink.ok());
  CHECK_FALSE((*sink)->outcome().has_value());
  (*sink)->Finish(absl::DataLossError("record 7"));
  (*sink)->Close(absl::NotFoundError("deleted"));
  REQUIRE((*sink)->outcome().has_value());
  CHECK((*sink)->outcome()->code() == absl::StatusCode::kDataLoss);
}

TEST_CASE("a ring larger than the memory is refused with figures") {
  const std::vector<BatchTensor> huge = {{"x", {DType::kFloat64, {int64_t{1} << 40}}, true}};
  const auto sink = RingSink::Create("p", huge, 3);
  CHECK(sink.status().code() == absl::StatusCode::kResourceExhausted);
  INFO(sink.status());
  CHECK(sink.status().message().find_first_of("0123456789") != absl::string_view::npos);
}

TEST_CASE("the default number of slots lies between 3 and 8") {
  CHECK(DefaultSlots(0) == 8);
  CHECK(DefaultSlots(1) == 8);
  CHECK(DefaultSlots(uint64_t{1} << 40) == 3);
  uint32_t last = 8;
  for (uint64_t bytes = 1; bytes < uint64_t{1} << 30; bytes *= 2) {
    CHECK(DefaultSlots(bytes) <= last);
    last = DefaultSlots(bytes);
  }
}

TEST_CASE("statuses keep code and message between engine and ring") {
  const absl::Status status = absl::DataLossError("x");
  CHECK(FromRing(ToRing(status)) == status);
  CHECK(FromRing({}).ok());
}

}  // namespace
}  // namespace penstock
