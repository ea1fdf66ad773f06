// Tensors of every kind through a ring, and segments whose tables are forged: a reader says no, or
// reads inside of the segment.
#include "ring/tensor_parts.h"

#include <random>
#include <string>
#include <vector>

#include "ring/segment_plan.h"
#include "tests/ring/test_ring.h"
#include "tests/support/all_kinds.h"
#include "tests/support/catch.h"
#include "tests/support/variable_slot.h"

namespace penstock::ring {
namespace {

constexpr uint8_t kText = static_cast<uint8_t>(TensorDType::kString);
constexpr uint8_t kNumber = static_cast<uint8_t>(TensorDType::kInt32);

TEST_CASE("a plan accepts what layout.h draws, and refuses every other kind") {
  struct Case {
    const char* what;
    TensorSpec tensor;
    uint32_t parts;  // 0: refused
  };
  const TensorKind dense = TensorKind::kDense, ragged = TensorKind::kRagged,
                   string = TensorKind::kString;
  const Case cases[] = {
      {"unknown width", {"t", kNumber, true, {4, -1, 3}}, 2},
      {"unknown rows", {"t", kNumber, true, {-1}}, 2},
      {"strings", {"t", kText, true, {4, 2}, string}, 2},
      {"a string", {"t", kText, false, {}, string}, 2},
      {"unknown strings", {"t", kText, true, {4, -1}, string}, 3},
      {"ragged", {"t", kNumber, true, {4, -1, 7}, ragged, 1}, 2},
      {"deep ragged", {"t", kNumber, true, {4, -1, -1, -1}, ragged, 3}, 4},
      {"ragged strings", {"t", kText, true, {4, -1, -1}, ragged, 2}, 4},
      {"a ragged element", {"t", kNumber, false, {-1, -1}, ragged, 1}, 2},
      {"below -1", {"t", kNumber, true, {4, -2}}, 0},
      {"dense strings", {"t", kText, true, {4}, dense}, 0},
      {"a string of numbers", {"t", kNumber, true, {4}, string}, 0},
      {"sparse", {"t", kNumber, true, {4, 9}, TensorKind::kSparse}, 3},
      {"sparse of unknown width", {"t", kNumber, true, {4, -1}, TensorKind::kSparse}, 3},
      {"sparse strings", {"t", kText, false, {-1}, TensorKind::kSparse}, 4},
      {"sparse beyond all memory", {"t", kNumber, true, {4, INT64_MAX}, TensorKind::kSparse}, 3},
      {"sparse without an axis", {"t", kNumber, false, {}, TensorKind::kSparse}, 0},
      {"ragged without a ragged axis", {"t", kNumber, true, {4, 3}, ragged, 0}, 0},
      {"a ragged axis of known size", {"t", kNumber, true, {4, 3}, ragged, 1}, 0},
      {"an unknown axis behind the ragged ones", {"t", kNumber, true, {4, -1, -1}, ragged, 1}, 0},
      {"more ragged axes than axes", {"t", kNumber, true, {4}, ragged, 1}, 0},
      {"too many ragged axes", {"t", kNumber, true, {4, -1, -1, -1, -1}, ragged, 4}, 0},
      {"too many for strings", {"t", kText, true, {4, -1, -1, -1}, ragged, 3}, 0},
      {"a rank without ragged", {"t", kNumber, true, {4, -1}, dense, 1}, 0},
      {"unknown dtype", {"t", 15, true, {4}}, 0},
      {"padded", {"t", kText, true, {4, -1}, string, 0, false, "?"}, 3},
      {"padding of half an element", {"t", kNumber, true, {4, -1}, dense, 0, false, "?"}, 0},
  };
  for (const Case& row : cases) {
    INFO(row.what);
    SegmentOptions options = SmallRing();
    options.tensors = {row.tensor};
    options.variable_bytes = 1000;
    SegmentPlan plan;
    const Status status = PlanSegment(options, &plan);
    INFO(status.message);
    CHECK(status.ok() == (row.parts != 0));
    if (!status.ok()) continue;
    CHECK(NumParts(plan.tensors[0]) == row.parts);
    CHECK(plan.variable_bytes == 1024);
    CHECK(CheckEntry(plan.tensors[0], plan.slot_stride) == nullptr);
  }
}

TEST_CASE("variable memory is there exactly where a tensor needs it") {
  SegmentPlan plan;
  SegmentOptions options = SmallRing();
  options.variable_bytes = 64;
  CHECK_FALSE(PlanSegment(options, &plan).ok());
  options.tensors[0].shape[1] = -1;
  CHECK(PlanSegment(options, &plan).ok());
  // The fixed tensor takes its bytes and 64 spare ones, 64 for the other.
  CHECK(plan.variable_offset == 128);
  options.variable_bytes = 0;
  CHECK_FALSE(PlanSegment(options, &plan).ok());
  options.variable_bytes = 64;
  options.structure.assign(kMaxStructureBytes, ' ');
  CHECK(PlanSegment(options, &plan).ok());
  options.structure += ' ';
  CHECK_FALSE(PlanSegment(options, &plan).ok());
}

TEST_CASE("tensors of every kind arrive as they were laid") {
  SegmentOptions options = AllKindsRing(5);
  options.structure = R"({"x":null})";
  auto writer = MakeWriter(options);
  TestConsumer consumer(writer.get());
  Reader& reader = consumer.reader();
  CHECK(reader.structure() == options.structure);
  for (uint64_t step = 0; step < 30; ++step) {
    const uint32_t rows = step % 2 == 0 ? 5 : 3;
    const int slot = writer->TryClaim();
    REQUIRE(slot >= 0);
    CHECK(writer->tensor(slot, 0) != nullptr);
    CHECK(writer->tensor(slot, 3) == nullptr);
    PublishAllKinds(writer.get(), slot, step, rows);
    const Lease lease = consumer.Take();
    CHECK(std::string(reinterpret_cast<const char*>(lease.cursor), lease.cursor_bytes) ==
          "cursor-" + std::to_string(step));
    TensorParts parts[12];
    for (uint32_t i = 0; i < 12; ++i) REQUIRE(reader.Find(lease, i, &parts[i]));
    CHECK(parts[0].values == lease.data);
    CHECK(parts[0].values_bytes == rows * 8);
    CHECK(parts[0].shape[0] == rows);
    CHECK(parts[3].num_offsets == rows + 1);
    CHECK(parts[4].num_offsets == 2);
    CHECK(std::string(reinterpret_cast<const char*>(parts[4].values), parts[4].values_bytes) ==
          "note " + std::to_string(step));
    CHECK(parts[5].shape[1] == static_cast<int64_t>(step % 3));
    CHECK(parts[6].shape[1] == static_cast<int64_t>(1 + step % 4));
    CHECK(parts[6].values[1] == (step + 1) % 251);
    CHECK(parts[7].num_splits[0] == rows + 1);
    CHECK(parts[7].splits[0][1] == static_cast<int64_t>(step % 4));
    CHECK(parts[8].values_bytes == static_cast<uint64_t>(parts[8].splits[0][rows]) * 8);
    CHECK(parts[9].splits[0][rows] + 1 == static_cast<int64_t>(parts[9].num_splits[1]));
    CHECK(parts[11].num_offsets ==
          static_cast<uint64_t>(parts[11].splits[1][rows == 5 ? 4 : 3]) + 1);
    for (const TensorParts& tensor : parts) {
      CHECK(reinterpret_cast<uintptr_t>(tensor.values) % kTensorAlignment == 0);
    }
    reader.Release(lease);
  }
}

TEST_CASE("the parts of a sparse tensor are found, and each of them is checked") {
  for (const bool is_text : {false, true}) {
    INFO((is_text ? "strings" : "numbers"));
    SegmentOptions options = SmallRing();
    options.tensors = {{"t", is_text ? kText : kNumber, true, {4, -1}, TensorKind::kSparse}};
    options.variable_bytes = 2000;
    SegmentPlan plan;
    REQUIRE(PlanSegment(options, &plan).ok());
    const TensorEntry& entry = plan.tensors[0];
    alignas(64) uint8_t slot[4096] = {};
    VariableSlot variable(slot, 2000);
    std::vector<TensorPart> made;
    if (is_text) {
      made = variable.StringParts({"a", "", "ccc"});
    } else {
      made.push_back(variable.Part(std::vector<int32_t>{7, 8, 9}));
    }
    // The third value stands where the data put it, outside of the shape.
    made.push_back(variable.Part(std::vector<int64_t>{0, 0, 0, 4, 3, 99}));
    made.push_back(variable.Part(std::vector<int64_t>{4, 5}));
    variable.Add(made);
    const TensorExtent good = variable.extents()[0];
    const auto find = [&](const TensorExtent& extent, TensorParts* parts) {
      return FindParts(entry, extent, 4, slot, sizeof slot, parts);
    };
    TensorParts parts;
    REQUIRE(find(good, &parts) == nullptr);
    CHECK(parts.num_indices == 6);
    CHECK(parts.indices[5] == 99);
    CHECK(parts.shape[0] == 4);
    CHECK(parts.shape[1] == 5);
    CHECK(parts.values_bytes == (is_text ? 4 : 12));
    for (uint32_t part = 0; part < NumParts(entry); ++part) {
      INFO("part " << part);
      const auto fails = [&](uint64_t offset, uint64_t bytes) {
        TensorExtent forged = good;
        forged.parts[part] = {offset, bytes};
        return find(forged, &parts) != nullptr;
      };
      const TensorPart place = good.parts[part];
      CHECK(fails(place.offset + 8, place.bytes));
      CHECK(fails(sizeof slot, place.bytes));
      CHECK(fails(UINT64_MAX - 63, place.bytes));
      CHECK(fails(place.offset, UINT64_MAX));
      CHECK(fails(place.offset, place.bytes - 1));
      if (!is_text || part != 1) CHECK(fails(place.offset, place.bytes + 8));
    }
    auto* shape = reinterpret_cast<int64_t*>(slot + good.parts[NumParts(entry) - 1].offset);
    for (const int64_t forged : {INT64_MIN, int64_t{-1}}) {
      shape[1] = forged;
      CHECK(find(good, &parts) != nullptr);
    }
    shape[1] = 5;
    shape[0] = 5;  // another number of rows than the batch has
    CHECK(find(good, &parts) != nullptr);
  }
}

TEST_CASE("each check of a tensor's parts is there") {
  auto writer = MakeWriter(AllKindsRing(4));
  TestConsumer consumer(writer.get());
  for (uint64_t step = 0; step < 5; ++step) {
    PublishAllKinds(writer.get(), writer->TryClaim(), step, 4);
    consumer.TakeAndRelease();
  }
  PublishAllKinds(writer.get(), writer->TryClaim(), 5, 4);
  const Lease lease = consumer.Take();
  const auto& entries = consumer.reader().tensors();
  ConsumerHandle handle;
  REQUIRE(writer->Attach("default", 1, &handle).ok());
  uint8_t* segment = MappedAt(handle.segment_fd);
  auto* header = reinterpret_cast<SegmentHeader*>(segment);
  auto* extents = reinterpret_cast<TensorExtent*>(segment + header->extent_table_offset) +
                  lease.slot * entries.size();
  uint8_t* slot = segment + header->slot_data_offset + lease.slot * header->slot_stride;
  const auto fails = [&](uint32_t tensor, const TensorExtent& extent) {
    TensorParts parts;
    return FindParts(entries[tensor], extent, 4, slot, header->slot_stride, &parts) != nullptr;
  };
  // Every part of every tensor that is not fixed: elsewhere, larger, smaller, odd.
  for (uint32_t tensor = 3; tensor < entries.size(); ++tensor) {
    REQUIRE_FALSE(fails(tensor, extents[tensor]));
    for (uint32_t part = 0; part < NumParts(entries[tensor]); ++part) {
      INFO("tensor " << tensor << ", part " << part);
      const TensorPart good = extents[tensor].parts[part];
      const auto fails_with = [&](uint64_t offset, uint64_t bytes) {
        TensorExtent forged = extents[tensor];
        forged.parts[part] = {offset, bytes};
        return fails(tensor, forged);
      };
      CHECK(fails_with(good.offset + 8, good.bytes));
      CHECK(fails_with(header->slot_stride + 64, good.bytes));
      CHECK(fails_with(UINT64_MAX - 63, good.bytes));
      CHECK(fails_with(good.offset, UINT64_MAX));
      CHECK(fails_with(good.offset, header->slot_stride));
      const bool is_bytes_of_strings = entries[tensor].dtype == kText && part == 1;
      if (!is_bytes_of_strings) {
        CHECK(fails_with(good.offset, good.bytes + 8));
        CHECK(fails_with(good.offset, good.bytes + 1));
      }
      if (good.bytes > 0) CHECK(fails_with(good.offset, good.bytes - 1));
      if (good.bytes >= 8) CHECK(fails_with(good.offset, good.bytes - 8));
    }
  }
  // The first and the last offset, the row splits and the shapes themselves.
  for (uint32_t tensor = 3; tensor < entries.size(); ++tensor) {
    for (uint32_t part = 0; part < NumParts(entries[tensor]); ++part) {
      const bool is_values = (part == 0 && entries[tensor].dtype != kText) ||
                             (part == 1 && entries[tensor].dtype == kText);
      if (is_values) continue;
      const TensorPart place = extents[tensor].parts[part];
      auto* numbers = reinterpret_cast<int64_t*>(slot + place.offset);
      for (const uint64_t at : {uint64_t{0}, place.bytes / 8 - 1}) {
        INFO("tensor " << tensor << ", part " << part << ", number " << at);
        const int64_t good = numbers[at];
        for (const int64_t forged : {INT64_MIN, int64_t{-1}, good + 100000, INT64_MAX}) {
          numbers[at] = forged;
          CHECK(fails(tensor, extents[tensor]));
        }
        numbers[at] = good;
      }
    }
  }
  // A reader that has met one is over.
  extents[6].parts[0].bytes += 1;
  TensorParts parts;
  CHECK_FALSE(consumer.reader().Find(lease, 6, &parts));
  CHECK_THAT(consumer.reader().error().message,
             Catch::Contains("malformed") && Catch::Contains("step 5, tensor 6"));
  Lease next;
  CHECK(consumer.reader().Next(0, &next) == Reader::Result::kFailed);
  writer->Detach(handle.id);
}

// Reads every byte that a client of `parts` may read, so that an address outside is a crash.
uint64_t ReadAll(const TensorParts& parts, uint32_t ragged_rank) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < parts.values_bytes + kTensorPadding; ++i) sum += parts.values[i];
  for (uint64_t i = 0; i < parts.num_offsets; ++i) sum += static_cast<uint64_t>(parts.offsets[i]);
  for (uint32_t axis = 0; axis < ragged_rank; ++axis) {
    for (uint64_t i = 0; i < parts.num_splits[axis]; ++i) {
      sum += static_cast<uint64_t>(parts.splits[axis][i]);
    }
  }
  return sum;
}

TEST_CASE("an element that rows are padded with is told, unless it is long") {
  struct Case {
    TensorSpec tensor;
    bool is_told;
  };
  const Case cases[] = {
      {{"t", kNumber, true, {4, -1}}, false},
      {{"t", kNumber, true, {4, -1}, TensorKind::kDense, 0, false, ""}, true},
      {{"t",
        kNumber,
        true,
        {4, -1},
        TensorKind::kDense,
        0,
        false,
        std::string(ElementBytes(kNumber), 'x')},
       true},
      {{"t", kText, true, {4, -1}, TensorKind::kString, 0, false, std::string(20, 'x')}, true},
      {{"t", kText, true, {4, -1}, TensorKind::kString, 0, false, std::string(21, 'x')}, false},
  };
  for (const Case& row : cases) {
    SegmentOptions options = SmallRing();
    options.tensors = {row.tensor};
    options.variable_bytes = 1000;
    const auto writer = MakeWriter(options);
    TestConsumer consumer(writer.get());
    TensorEntry entry = consumer.reader().tensors()[0];
    CHECK((entry.flags & kTensorPadded) == (row.is_told ? kTensorPadded : 0));
    const std::string told(reinterpret_cast<const char*>(entry.padding), entry.padding_bytes);
    CHECK(told == (row.is_told ? row.tensor.padding.value_or("") : ""));
    CHECK(CheckEntry(entry, 1 << 20) == nullptr);
    entry.padding_bytes = row.tensor.dtype == kText ? kMaxPaddingBytes + 1 : 1;
    CHECK(CheckEntry(entry, 1 << 20) != nullptr);
  }
}

TEST_CASE("forged tables of a segment never crash a reader") {
  uint64_t opened = 0, refused = 0, found = 0, rejected = 0, sum = 0;
  for (uint32_t seed = 1; seed <= 3000; ++seed) {
    std::mt19937_64 dice(seed);
    auto writer = MakeWriter(AllKindsRing(4));
    ConsumerHandle handle;
    REQUIRE(writer->Attach("default", 1, &handle).ok());
    PublishAllKinds(writer.get(), writer->TryClaim(), 0, 4);
    PublishAllKinds(writer.get(), writer->TryClaim(), 1, 3);
    uint8_t* segment = MappedAt(handle.segment_fd);
    auto* header = reinterpret_cast<SegmentHeader*>(segment);
    const uint64_t file_bytes = header->segment_bytes;
    const uint64_t extent_offset = header->extent_table_offset;
    // The header behind its version, all tables, and the two slots' beginnings with their numbers.
    const uint64_t regions[][2] = {{16, 128},
                                   {1536, 1568},
                                   {header->tensor_table_offset, header->slot_table_offset},
                                   {header->slot_table_offset, header->slot_table_offset + 2200},
                                   {header->ring_table_offset, header->ring_table_offset + 32},
                                   {extent_offset, extent_offset + 2 * 12 * sizeof(TensorExtent)},
                                   {header->slot_data_offset, header->slot_data_offset + 4096}};
    const uint64_t changes = 1 + dice() % 3;
    for (uint64_t i = 0; i < changes; ++i) {
      const auto& region = regions[dice() % 7];
      const uint64_t at = region[0] + dice() % (region[1] - region[0] - 8) / 4 * 4;
      uint64_t old;
      std::memcpy(&old, segment + at, 8);
      const uint64_t values[] = {dice(),
                                 0,
                                 UINT64_MAX,
                                 old + 1,
                                 old + 64,
                                 old - 64,
                                 old * 2,
                                 file_bytes,
                                 dice() % 64,
                                 old ^ (1ull << (dice() % 64)),
                                 uint64_t{1} << 63,
                                 file_bytes - 64};
      const uint64_t value = values[dice() % 12];
      std::memcpy(segment + at, &value, dice() % 2 == 0 ? 8 : 4);
    }
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    Descriptor daemon_end(ends[0]);
    std::unique_ptr<Reader> reader;
    const Status status = Reader::Open({.socket = ends[1],
                                        .segment_fd = dup(handle.segment_fd),
                                        .control_fd = dup(handle.control_fd),
                                        .bell_fd = dup(handle.bell_fd),
                                        .consumer = handle.id,
                                        .start_step = handle.start_step},
                                       &reader);
    if (!status.ok()) {
      ++refused;
      continue;
    }
    ++opened;
    Lease lease;
    while (reader->Next(0, &lease) == Reader::Result::kBatch) {
      for (uint32_t i = 0; i < reader->tensors().size(); ++i) {
        TensorParts parts;
        if (!reader->Find(lease, i, &parts)) {
          ++rejected;
          break;
        }
        ++found;
        sum += ReadAll(parts, reader->tensors()[i].ragged_rank);
      }
      for (uint32_t i = 0; i < lease.cursor_bytes; ++i) sum += lease.cursor[i];
      reader->Release(lease);
    }
  }
  INFO(opened << " opened, " << refused << " refused, " << found << " tensors, " << rejected
              << " rejected, " << sum);
  CHECK(opened > 300);
  CHECK(refused > 300);
  CHECK(rejected > 200);
}

}  // namespace
}  // namespace penstock::ring
