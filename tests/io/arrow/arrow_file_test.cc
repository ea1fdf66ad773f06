#include "io/arrow/arrow_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "io/arrow/arrow_column.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/support/memory_file.h"
#include "tests/support/tree.h"

namespace penstock {
namespace {

using test::InMemory;
using testing::ReadGolden;

struct Found {
  absl::Status status;
  uint64_t rows = 0;
  uint64_t batches = 0;
  std::vector<Damage> damage;
};

// Whether all that the metadata says lies in the file.
void CheckInside(const ArrowBatch& batch, uint64_t size) {
  CHECK(batch.offset < size);
  for (const ArrowExtent& extent : batch.buffers) {
    CHECK(extent.bytes <= size);
    CHECK(extent.offset <= size - extent.bytes);
  }
}

Found Read(const std::string& bytes, OnDamage on_damage = OnDamage::kFail) {
  Found found;
  auto file = ArrowFile::Open(InMemory(bytes), on_damage);
  found.status = file.status();
  if (!file.ok()) return found;
  found.status = (*file)->ForEachBatch(
      [&](const ArrowBatch& batch) {
        CheckInside(batch, bytes.size());
        if (!batch.dictionary) ++found.batches;
        if (!batch.dictionary) found.rows += batch.rows;
        return absl::OkStatus();
      },
      &found.damage);
  return found;
}

std::vector<std::string> Goldens() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(testing::InTree("tests/golden/arrow")))
    names.push_back("arrow/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  REQUIRE(names.size() > 15);
  return names;
}

TEST_CASE("arrow: the record batches of files and streams are found") {
  const struct {
    const char* name;
    uint64_t rows, batches;
    bool has_footer;
  } cases[] = {
      {"arrow/numbers.arrow", 10, 4, true},    {"arrow/numbers_stream.arrow", 10, 4, false},
      {"arrow/numbers_v4.arrow", 10, 4, true}, {"arrow/numbers_old.arrow", 10, 4, false},
      {"arrow/no_rows.arrow", 0, 1, false},    {"arrow/dictionaries_replaced.arrow", 7, 3, false},
      {"arrow/feather.arrow", 6, 2, true},
  };
  for (const auto& one : cases) {
    INFO(one.name);
    const std::string bytes = ReadGolden(one.name);
    const Found found = Read(bytes);
    INFO(found.status.ToString());
    CHECK(found.status.ok());
    CHECK(found.rows == one.rows);
    CHECK(found.batches == one.batches);
    CHECK((*ArrowFile::Open(InMemory(bytes), OnDamage::kFail))->has_footer() == one.has_footer);
  }
}

TEST_CASE(
    "arrow: a file that is cut anywhere is an error with its address, or ends between two "
    "messages") {
  for (const std::string name : {"arrow/numbers.arrow", "arrow/numbers_stream.arrow",
                                 "arrow/dictionaries_delta.arrow", "arrow/numbers_old.arrow"}) {
    const std::string bytes = ReadGolden(name);
    const Found whole = Read(bytes);
    for (size_t size = 0; size < bytes.size(); ++size) {
      INFO(name << " cut to " << size << " bytes");
      const Found cut = Read(bytes.substr(0, size));
      CHECK(cut.rows <= whole.rows);
      if (!cut.status.ok()) {
        CHECK(absl::IsDataLoss(cut.status));
        CHECK_THAT(std::string(cut.status.message()), Catch::Contains("offset"));
      }
      // Whole batches are read where damage is skipped.
      const Found skipped = Read(bytes.substr(0, size), OnDamage::kSkipRecord);
      if (skipped.status.ok()) {
        CHECK(skipped.rows >= cut.rows);
        CHECK(skipped.rows <= whole.rows);
        for (const Damage& damage : skipped.damage) {
          CHECK(damage.offset <= size);
          CHECK(damage.length <= size - damage.offset);
        }
      } else {
        // The schema is gone.
        CHECK(skipped.rows == 0);
      }
    }
  }
}

TEST_CASE("arrow: a cut file gives its whole batches where damage is skipped") {
  const std::string bytes = ReadGolden("arrow/numbers.arrow");
  const Found cut = Read(bytes.substr(0, bytes.size() - 1), OnDamage::kSkipRecord);
  INFO(cut.status.ToString());
  CHECK(cut.status.ok());
  CHECK(cut.rows == 10);
  CHECK_THAT(std::string(Read(bytes.substr(0, bytes.size() - 1)).status.message()),
             Catch::Contains("no sound footer") && Catch::Contains("skip_record"));
}

TEST_CASE("arrow: a file that was cut between two messages is damaged, too") {
  const std::string bytes = ReadGolden("arrow/numbers.arrow");
  auto file = ArrowFile::Open(InMemory(bytes), OnDamage::kFail);
  REQUIRE(file.ok());
  std::vector<uint64_t> offsets;
  std::vector<Damage> damage;
  const absl::Status status = (*file)->ForEachBatch(
      [&](const ArrowBatch& batch) {
        offsets.push_back(batch.offset);
        return absl::OkStatus();
      },
      &damage);
  REQUIRE(status.ok());
  REQUIRE(offsets.size() == 4);
  const Found cut = Read(bytes.substr(0, offsets[2]), OnDamage::kSkipRecord);
  INFO(cut.status.ToString());
  CHECK(cut.status.ok());
  CHECK(cut.batches == 2);
  REQUIRE(cut.damage.size() == 1);
  CHECK((cut.damage[0] == Damage{offsets[2], 0, DamageReason::kCutRecord}));
}

TEST_CASE(
    "arrow: any byte another one is read, refused, or left out, and never read outside of the "
    "file") {
  for (const std::string& name : Goldens()) {
    const std::string bytes = ReadGolden(name);
    if (bytes.size() > 4000) continue;
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\0', '\1', '\x7f', '\xff'}) {
        std::string changed = bytes;
        if (changed[at] == value) continue;
        changed[at] = value;
        INFO(name << ", byte " << at);
        for (const OnDamage on_damage :
             {OnDamage::kFail, OnDamage::kSkipRecord, OnDamage::kSkipShard}) {
          const Found found = Read(changed, on_damage);
          if (!found.status.ok())
            CHECK((absl::IsDataLoss(found.status) || absl::IsInvalidArgument(found.status)));
        }
      }
    }
  }
}

TEST_CASE("arrow: what is no Arrow file says what it is") {
  const struct {
    std::string bytes;
    const char* message;
  } cases[] = {
      {"", "expected a schema"},
      {"PAR1 and more of it", "a Parquet file"},
      {"FEA1 and more of it", "Feather file of version 1"},
      {"\x1f\x8b and more of it", "a gzip file"},
      {"\x28\xb5\x2f\xfd and more of it", "a zstd file"},
      {std::string(100, 'x'), "something else"},
      {std::string("ARROW1\0\0", 8) + std::string(100, 'x'), "does not end with ARROW1"},
  };
  for (const auto& one : cases) {
    const Found found = Read(one.bytes);
    INFO(found.status.ToString());
    CHECK(absl::IsDataLoss(found.status));
    CHECK_THAT(std::string(found.status.message()), Catch::Contains(one.message));
  }
}

TEST_CASE("arrow: columns of times are alike if they have the same unit") {
  const auto file = ArrowFile::Open(InMemory(ReadGolden("arrow/numbers.arrow")), OnDamage::kFail);
  REQUIRE(file.ok());
  for (const std::string name : {"time32[s]", "time64[us]", "timestamp[us]", "duration[ms]"}) {
    INFO(name);
    const auto column =
        FindArrowColumn((*file)->schema(), {name.substr(0, name.find('['))}, /*to_values=*/true);
    REQUIRE(column.ok());
    CHECK(column->type_name == name);
    ArrowColumn other = *column;
    CHECK(column->IsLike(other));
    ++other.unit;
    CHECK_FALSE(column->IsLike(other));
  }
}

TEST_CASE("arrow: numbers and times of the same bytes are not alike, strings and bytes are") {
  const auto column_of = [](ArrowKind kind) {
    ArrowSchema schema;
    ArrowField& field = schema.fields.emplace_back();
    field.name = "x";
    field.type.kind = kind;
    field.type.bits = 64;
    return *FindArrowColumn(schema, {"x"}, /*to_values=*/true);
  };
  const ArrowColumn number = column_of(ArrowKind::kInt);
  for (const ArrowKind kind : {ArrowKind::kTimestamp, ArrowKind::kDuration, ArrowKind::kTime}) {
    const ArrowColumn time = column_of(kind);
    INFO(time.type_name);
    // Seconds have the unit 0, as what is no time.
    CHECK(time.dtype == number.dtype);
    CHECK(time.unit == number.unit);
    CHECK_FALSE(time.IsLike(number));
    CHECK_FALSE(number.IsLike(time));
    CHECK(time.IsLike(column_of(kind)));
  }
  CHECK_FALSE(column_of(ArrowKind::kTimestamp).IsLike(column_of(ArrowKind::kDuration)));
  CHECK(column_of(ArrowKind::kUtf8).IsLike(column_of(ArrowKind::kBinary)));
}

TEST_CASE("arrow: a footer that lists one message many times is refused") {
  int refused = 0;
  for (const std::string& name : Goldens()) {
    std::string bytes = ReadGolden(name);
    auto file = ArrowFile::Open(InMemory(bytes), OnDamage::kFail);
    if (!file.ok() || !(*file)->has_footer()) continue;
    std::vector<uint64_t> offsets;
    std::vector<Damage> damage;
    const absl::Status status = (*file)->ForEachBatch(
        [&](const ArrowBatch& batch) {
          if (!batch.dictionary) offsets.push_back(batch.offset);
          return absl::OkStatus();
        },
        &damage);
    if (!status.ok() || offsets.size() < 2) continue;
    // Behind the last message, offsets stand in the footer alone.
    for (size_t at = offsets.back() + 8; at + 8 <= bytes.size(); ++at) {
      uint64_t offset = 0;
      std::memcpy(&offset, &bytes[at], sizeof(offset));
      if (std::find(offsets.begin(), offsets.end(), offset) != offsets.end())
        std::memcpy(&bytes[at], &offsets.back(), sizeof(offset));
    }
    const Found found = Read(bytes, OnDamage::kSkipRecord);
    INFO(name << ": " << found.status.ToString());
    if (found.status.ok()) continue;
    CHECK_THAT(std::string(found.status.message()),
               Catch::Contains("the footer lists messages that overlap"));
    ++refused;
  }
  CHECK(refused > 0);
}

TEST_CASE("arrow: paths of columns") {
  const auto names = ParseArrowPath(R"(a\.b.c\\.d)");
  REQUIRE(names.ok());
  CHECK(*names == std::vector<std::string>{"a.b", "c\\", "d"});
  CHECK(ArrowPath(*names) == R"(a\.b.c\\.d)");
  CHECK(!ParseArrowPath("a\\").ok());
}

}  // namespace
}  // namespace penstock
