// Variable memory whose pages are taken when batches need them.

#include <cstring>
#include <memory>
#include <string>

#include "ring/aligned_map.h"
#include "ring/memory_limit.h"
#include "ring/memory_promise.h"
#include "ring/segment.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

constexpr uint64_t kMiB = 1 << 20;

// Slots of a number, and of strings in 64 MiB.
SegmentOptions Strings(bool grows) {
  SegmentOptions options = SmallRing(3, 5);
  options.tensors = {
      {"text", static_cast<uint8_t>(TensorDType::kString), true, {kWords / 2}, TensorKind::kString},
      {"tag", static_cast<uint8_t>(TensorDType::kInt32), false, {}}};
  options.variable_bytes = 64 * kMiB;
  options.variable_grows = grows;
  return options;
}

std::unique_ptr<Segment> MakeSegment(const SegmentOptions& options) {
  std::unique_ptr<Segment> segment;
  const Status status = Segment::Create(options, &segment);
  INFO(status.message);
  REQUIRE(status.ok());
  return segment;
}

TEST_CASE(
    "variable memory that grows takes a huge page of each slot, and the rest as it is needed") {
  const auto segment = MakeSegment(Strings(true));
  CHECK(segment->plan().variable_bytes == 64 * kMiB);
  CHECK(segment->plan().slot_stride % kHugePageBytes == 0);
  CHECK(segment->plan().slot_data_offset % kHugePageBytes == 0);
  CHECK(segment->taken_bytes() == 3 * kHugePageBytes);
  segment->MakeRoom(1, 10 * kMiB);
  CHECK(segment->taken_bytes() == 3 * kHugePageBytes + 10 * kMiB);
  // What is there already.
  segment->MakeRoom(1, 9 * kMiB);
  CHECK(segment->taken_bytes() == 3 * kHugePageBytes + 10 * kMiB);
  // All of it, to the last byte.
  segment->MakeRoom(2, 64 * kMiB);
  CHECK(segment->taken_bytes() == 2 * kHugePageBytes + 10 * kMiB + segment->plan().slot_stride);
  std::memset(segment->variable(2), 0x5a, 64 * kMiB);
  // More slots begin as the first ones did.
  REQUIRE(segment->Populate(3, 2).ok());
  CHECK(segment->taken_bytes() == 4 * kHugePageBytes + 10 * kMiB + segment->plan().slot_stride);
}

TEST_CASE("variable memory of a size that was asked for is taken at once, as on a NUMA node") {
  const auto segment = MakeSegment(Strings(false));
  CHECK(segment->taken_bytes() == 3 * segment->plan().slot_stride);
  CHECK(segment->plan().slot_stride > 64 * kMiB);
  SegmentOptions on_node = Strings(true);
  on_node.numa_node = 0;
  CHECK(MakeSegment(on_node)->taken_bytes() >= 3 * 64 * kMiB);
}

TEST_CASE("fault 34: what is taken later was promised, and is not there for others") {
  const uint64_t before = MemoryPromise::Total();
  auto segment = MakeSegment(Strings(true));
  const uint64_t stride = segment->plan().slot_stride;
  CHECK(MemoryPromise::Total() == before + 3 * stride - segment->taken_bytes());
  segment->MakeRoom(0, 30 * kMiB);
  CHECK(MemoryPromise::Total() == before + 3 * stride - segment->taken_bytes());
  // Others of this machine take and give while the two are read.
  const uint64_t difference = ReadMemoryAtHand().bytes - ReadUnpromisedMemory().bytes;
  CHECK(difference > MemoryPromise::Total() / 2);
  CHECK(ReadUnpromisedMemory().source.find(" promised to other rings") != std::string::npos);
  segment.reset();
  CHECK(MemoryPromise::Total() == before);
}

TEST_CASE("fault 34: slots that there is no memory for are on nobody's bill") {
  SegmentOptions options = SmallRing(1, 17);
  options.tensors = Strings(true).tensors;
  options.variable_bytes = ReadMemoryAtHand().bytes / 8;
  options.variable_grows = true;
  uint64_t reserved = 0;
  options.reserve = [&reserved](uint64_t bytes) {
    reserved += bytes;
    return Status{};
  };
  const auto segment = MakeSegment(options);
  const uint64_t stride = segment->plan().slot_stride;
  CHECK(reserved == stride);
  for (int i = 0; i < 3; ++i) CHECK(segment->Populate(1, 16).code == Code::kResourceExhausted);
  CHECK(reserved == stride);
  CHECK(segment->Populate(1, 1).ok());
  CHECK(reserved == 2 * stride);
}

TEST_CASE("fault 34: a ring is looked at as a whole, whatever of it grows") {
  SegmentOptions options = Strings(true);
  options.variable_bytes = uint64_t{1} << 50;
  std::unique_ptr<Segment> segment;
  const Status status = Segment::Create(options, &segment);
  CHECK(status.code == Code::kResourceExhausted);
  CHECK(segment == nullptr);
}

}  // namespace
}  // namespace penstock::ring
