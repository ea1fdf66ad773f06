#include "server/service/stream/ring_sink.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"
#include "tests/support/variable_slot.h"

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
    StepInfo info;
    info.step = step;
    info.rows = 5;
    (*sink)->Publish(slots[step], info);
  }
  CHECK((*sink)->writer().published() == 3);
  // Nobody has read them.
  CHECK_FALSE((*sink)->TryClaim(&slots[3]));
}

TEST_CASE("tensors that are not fixed get their memory, and arrive with cursor and structure") {
  const std::vector<BatchTensor> tensors = {
      {"text", {DType::kString, {2}}, true, TensorKind::kString},
      {"x", {DType::kFloat32, {2, 3}}, true},
      {"crop", {DType::kUint8, {2, kUnknownSize}}, true},
      {"ids", {DType::kInt64, {2, kUnknownSize}}, true, TensorKind::kRagged, 1}};
  auto sink = RingSink::Create("p", tensors, 3,
                               {.structure = "[null,null,null,null]", .variable_bytes = 10000});
  REQUIRE(sink.ok());
  ring::TestConsumer consumer(&(*sink)->writer());
  CHECK(consumer.reader().structure() == "[null,null,null,null]");
  for (uint64_t step = 0; step < 5; ++step) {
    ClaimedSlot slot;
    REQUIRE((*sink)->TryClaim(&slot));
    REQUIRE(slot.tensors.size() == 4);
    CHECK(slot.tensors[0] == nullptr);
    CHECK(slot.tensors[1] != nullptr);
    CHECK(slot.variable_bytes >= 10000);
    CHECK(reinterpret_cast<uintptr_t>(slot.variable) % 64 == 0);
    VariableSlot variable(slot.variable, slot.variable_bytes);
    const std::string digit = std::to_string(step);
    variable.AddStrings({"a", digit});
    variable.AddDense<uint8_t>({1, 2, 3, 4}, {2, 2});
    variable.AddRagged<int64_t>({7, 8, 9}, {{0, 1, 3}});
    StepInfo info;
    info.step = step;
    info.rows = 2;
    info.cursor = digit + " and on";
    for (const ring::TensorExtent& extent : variable.extents()) {
      TensorExtent& copy = info.extents.emplace_back();
      for (int part = 0; part < 4; ++part) {
        copy.parts[part] = {extent.parts[part].offset, extent.parts[part].bytes};
      }
    }
    (*sink)->Publish(slot, info);
    const ring::Lease lease = consumer.Take();
    CHECK(std::string(reinterpret_cast<const char*>(lease.cursor), lease.cursor_bytes) ==
          info.cursor);
    ring::TensorParts parts[4];
    for (uint32_t i = 0; i < 4; ++i) REQUIRE(consumer.reader().Find(lease, i, &parts[i]));
    CHECK(parts[0].values[0] == 'a');
    CHECK(parts[0].values[1] == digit[0]);
    CHECK(parts[2].values[3] == 4);
    CHECK(parts[3].splits[0][1] == 1);
    consumer.reader().Release(lease);
  }
}

TEST_CASE("fixed tensors take no variable memory") {
  auto sink = RingSink::Create("p", TwoTensors(5), 3);
  REQUIRE(sink.ok());
  ClaimedSlot slot;
  REQUIRE((*sink)->TryClaim(&slot));
  CHECK(slot.variable == nullptr);
  CHECK(slot.variable_bytes == 0);
  // One page a slot, and tables below half a megabyte.
  CHECK((*sink)->writer().segment_bytes() < 64 * 4096 + (512 << 10));
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

TEST_CASE("faults 34 and 63: a ring larger than the memory is refused with figures") {
  const std::vector<BatchTensor> huge = {{"x", {DType::kFloat64, {int64_t{1} << 40}}, true}};
  const auto sink = RingSink::Create("p", huge, 3);
  CHECK(sink.status().code() == absl::StatusCode::kResourceExhausted);
  INFO(sink.status());
  CHECK(sink.status().message().find_first_of("0123456789") != absl::string_view::npos);
}

TEST_CASE(
    "the default number of slots lies between 4 and 8, and is 3 where four are no part of the "
    "cache") {
  CHECK(DefaultSlots(0) == 8);
  CHECK(DefaultSlots(1) == 8);
  CHECK(DefaultSlots(uint64_t{1} << 20, 24 << 20) == 8);
  CHECK(DefaultSlots(uint64_t{1} << 20, 18 << 20) == 6);
  CHECK(DefaultSlots(uint64_t{4} << 20, 32 << 20) == 4);
  CHECK(DefaultSlots((uint64_t{4} << 20) + 1, 32 << 20) == 3);
  CHECK(DefaultSlots(uint64_t{1} << 20, 8 << 20) == 4);
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
