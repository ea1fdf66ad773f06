// The bytes of the contract: codes that other files share, and where a plan puts things. The
// offsets inside the structures are checked by the compiler, in ring/layout.h.
#include "ring/layout.h"

#include <cstring>
#include <string>

#include "base/dtype.h"
#include "ring/attach.h"
#include "ring/segment.h"
#include "ring/segment_plan.h"
#include "tests/ring/test_ring.h"
#include "tests/support/catch.h"

namespace penstock::ring {
namespace {

TEST_CASE("element types have the server's codes and sizes") {
  const std::pair<TensorDType, DType> pairs[] = {
      {TensorDType::kInvalid, DType::kInvalid}, {TensorDType::kBool, DType::kBool},
      {TensorDType::kInt8, DType::kInt8},       {TensorDType::kUint8, DType::kUint8},
      {TensorDType::kInt16, DType::kInt16},     {TensorDType::kUint16, DType::kUint16},
      {TensorDType::kInt32, DType::kInt32},     {TensorDType::kUint32, DType::kUint32},
      {TensorDType::kInt64, DType::kInt64},     {TensorDType::kUint64, DType::kUint64},
      {TensorDType::kFloat16, DType::kFloat16}, {TensorDType::kBfloat16, DType::kBfloat16},
      {TensorDType::kFloat32, DType::kFloat32}, {TensorDType::kFloat64, DType::kFloat64},
      {TensorDType::kString, DType::kString}};
  for (const auto& [ours, theirs] : pairs) {
    INFO(static_cast<int>(ours));
    CHECK(static_cast<uint8_t>(ours) == static_cast<uint8_t>(theirs));
    CHECK(ElementBytes(static_cast<uint8_t>(ours)) == DTypeSize(theirs));
  }
  CHECK(ElementBytes(200) == 0);
}

TEST_CASE("magics read as text") {
  const auto text = [](uint64_t magic) {
    char bytes[8];
    std::memcpy(bytes, &magic, 8);
    return std::string(bytes, 8);
  };
  CHECK(text(kSegmentMagic) == "PNSTKSEG");
  CHECK(text(kControlMagic) == "PNSTKCTL");
  CHECK(text(kRequestMagic) == "PNSTKATT");
  CHECK(text(kReplyMagic) == "PNSTKREP");
}

TEST_CASE("a plan puts the tables, the slots and the tensors where layout.h says") {
  SegmentOptions options = SmallRing(3, 9);
  options.tensors = {{"a", static_cast<uint8_t>(TensorDType::kUint8), true, {3}},
                     {"b", static_cast<uint8_t>(TensorDType::kFloat64), true, {3, 5}},
                     {"c", static_cast<uint8_t>(TensorDType::kFloat32), true, {0, 7}},
                     {"d", static_cast<uint8_t>(TensorDType::kInt16), false, {65}}};
  SegmentPlan plan;
  REQUIRE(PlanSegment(options, &plan).ok());
  CHECK(plan.ring_entries == 16);
  CHECK(plan.tensor_table_offset == 4096);
  CHECK(plan.slot_table_offset == 4096 + 4 * 320);
  CHECK(plan.ring_table_offset == plan.slot_table_offset + 9 * 1088);
  CHECK(plan.extent_table_offset == plan.ring_table_offset + 16 * 16);
  CHECK(plan.slot_data_offset % 4096 == 0);
  CHECK(plan.slot_data_offset >= plan.extent_table_offset + 9 * 4 * 64);
  CHECK(plan.slot_stride == 4096);
  CHECK(plan.segment_bytes == plan.slot_data_offset + 9 * 4096);
  const uint64_t offsets[] = {0, 128, 320, 384};
  const uint64_t bytes[] = {3, 120, 0, 130};
  const uint64_t row_bytes[] = {1, 40, 28, 0};
  for (int i = 0; i < 4; ++i) {
    CHECK(plan.tensors[i].offset == offsets[i]);
    CHECK(plan.tensors[i].capacity_bytes == bytes[i]);
    CHECK(plan.tensors[i].row_bytes == row_bytes[i]);
    CHECK(plan.tensors[i].flags == (i < 3 ? kTensorBatched : 0));
  }
}

TEST_CASE("a segment describes itself") {
  std::unique_ptr<Segment> segment;
  REQUIRE(Segment::Create(SmallRing(3, 9), &segment).ok());
  const SegmentHeader& header = segment->header();
  CHECK(header.magic == kSegmentMagic);
  CHECK(header.abi_version == kAbiVersion);
  CHECK(header.header_bytes == sizeof(SegmentHeader));
  CHECK(header.segment_bytes == segment->bytes());
  CHECK(std::string(header.pipeline, header.pipeline_bytes) == "small");
  CHECK(header.slots_max == 9);
  CHECK(header.slots.load() == 3);
  CHECK(header.published.load() == 0);
  const auto* base = reinterpret_cast<const uint8_t*>(&header);
  const auto* tensors = reinterpret_cast<const TensorEntry*>(base + header.tensor_table_offset);
  CHECK(std::string(tensors[0].name, tensors[0].name_bytes) == "words");
  CHECK(tensors[0].shape[0] == kWords / 2);
  CHECK(tensors[0].row_bytes == 16);
  CHECK(std::string(tensors[1].name, tensors[1].name_bytes) == "tag");
  CHECK(tensors[1].ndim == 0);
  const auto* extents = reinterpret_cast<const TensorExtent*>(base + header.extent_table_offset);
  for (uint32_t slot = 0; slot < 9; ++slot) {
    CHECK(segment->slot_entry(slot).step == kNoStep);
    CHECK(extents[slot * 2 + 1].parts[0].offset == tensors[1].offset);
    CHECK(extents[slot * 2 + 1].parts[0].bytes == 4);
  }
  std::unique_ptr<Segment> other;
  REQUIRE(Segment::Create(SmallRing(3, 9), &other).ok());
  CHECK(other->header().generation != header.generation);
}

}  // namespace
}  // namespace penstock::ring
