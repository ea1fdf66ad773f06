#include "io/record/record_offsets.h"

#include <vector>

#include "tests/support/catch.h"

namespace penstock {
namespace {

RecordOffsets Built(const std::vector<uint64_t>& offsets, uint8_t shift = 0) {
  RecordOffsetsBuilder builder(shift, offsets.empty() ? 0 : offsets.back() + 1);
  for (const uint64_t offset : offsets) builder.Add(offset);
  CHECK(builder.size() == offsets.size());
  return builder.Finish();
}

void CheckOffsets(const RecordOffsets& found, const std::vector<uint64_t>& offsets) {
  REQUIRE(found.size() == offsets.size());
  for (size_t i = 0; i < offsets.size(); ++i) CHECK(found[i] == offsets[i]);
  for (size_t i = 0; i < offsets.size(); ++i) {
    CHECK(found.FirstFrom(offsets[i]) == i);
    CHECK(found.FirstFrom(offsets[i] + 1) == i + 1);
  }
}

TEST_CASE("Offsets are what was added, of any number and distance") {
  for (const uint64_t distance : {uint64_t{1}, uint64_t{100}, uint64_t{2427}, uint64_t{2428},
                                  uint64_t{70000}, uint64_t{1} << 40}) {
    for (const size_t count : {0, 1, 27, 28, 29, 56, 1000}) {
      std::vector<uint64_t> offsets;
      for (size_t i = 0; i < count; ++i) offsets.push_back(5 + i * distance);
      CAPTURE(distance, count);
      CheckOffsets(Built(offsets), offsets);
    }
  }
}

TEST_CASE("A line of records that lie close takes 64 bytes, any other 8 more a record") {
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < 28; ++i) offsets.push_back(i * 10);
  // The second line spans one byte too much, the third as much as it may.
  for (uint64_t i = 0; i < 28; ++i) offsets.push_back(1000 + (i == 27 ? 65536 : i));
  for (uint64_t i = 0; i < 28; ++i) offsets.push_back(100000 + (i == 27 ? 65535 : i));
  const RecordOffsets built = Built(offsets);
  CheckOffsets(built, offsets);
  CHECK(built.lines().size() == 3);
  CHECK(built.wide().size() == 28);
}

TEST_CASE("Multiples of 512 reach 512 times as far") {
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < 100; ++i) offsets.push_back(i * (uint64_t{1} << 20));
  const RecordOffsets built = Built(offsets, 9);
  CheckOffsets(built, offsets);
  CHECK(built.wide().empty());
}

TEST_CASE("Offsets of records of one length are computed") {
  const RecordOffsets even = RecordOffsets::Even(12, 100, 1000);
  std::vector<uint64_t> offsets;
  for (uint64_t i = 0; i < 1000; ++i) offsets.push_back(12 + 100 * i);
  CheckOffsets(even, offsets);
  CHECK(even.lines().empty());
  CHECK(even.is_even());
}

}  // namespace
}  // namespace penstock
