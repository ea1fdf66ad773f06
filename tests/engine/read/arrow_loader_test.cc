#include "server/engine/read/arrow_loader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/support/arrow_source.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock {
namespace {

using test::ArrowInMemory;
using test::InMemory;
using testing::ReadGolden;

constexpr const char* kFiles[] = {"lists_nulls",
                                  "dictionaries",
                                  "structs_nulls",
                                  "nulls",
                                  "texts_zstd",
                                  "dictionaries_zstd",
                                  "dictionaries_nulls",
                                  "dictionaries_delta",
                                  "dictionaries_replaced",
                                  "structs"};

std::string Bytes(const std::string& name) { return ReadGolden("arrow/" + name + ".arrow"); }

TEST_CASE("arrow: rows are the same one by one, together, and backwards") {
  for (const std::string name : kFiles) {
    INFO(name);
    auto source = ArrowInMemory::Open(InMemory(Bytes(name)), OnDamage::kFail);
    INFO(source.status().ToString());
    REQUIRE(source.ok());
    const auto rows = static_cast<uint32_t>((*source)->batches->num_rows());
    REQUIRE(rows > 0);
    std::vector<std::string> single(rows);
    for (uint32_t row = rows; row-- > 0;) {
      auto loaded = (*source)->Load(row, 1);
      INFO(loaded.status().ToString());
      REQUIRE(loaded.ok());
      single[row] = *loaded;
    }
    for (uint32_t row = 0; row + 1 < rows; ++row) {
      auto both = (*source)->Load(row, 2);
      REQUIRE(both.ok());
      CHECK(both->size() == single[row].size() + single[row + 1].size());
    }
  }
}

TEST_CASE("arrow: any byte another one gives rows of their types, or an error with its address") {
  for (const std::string name : kFiles) {
    const std::string bytes = Bytes(name);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\0', '\x7f', '\xff'}) {
        std::string changed = bytes;
        if (changed[at] == value) continue;
        changed[at] = value;
        auto source = ArrowInMemory::Open(InMemory(changed), OnDamage::kSkipRecord, at % 2 == 0);
        if (!source.ok()) continue;
        const uint64_t rows = std::min<uint64_t>((*source)->batches->num_rows(), 8);
        INFO(name << ", byte " << at);
        for (uint64_t row = 0; row < rows; ++row) {
          auto loaded = (*source)->Load(row, 1);
          if (loaded.ok()) continue;
          CHECK(absl::IsDataLoss(loaded.status()));
          CHECK_THAT(std::string(loaded.status().message()),
                     Catch::Contains("feature \"") && Catch::Contains("of record batch"));
        }
      }
    }
  }
}

TEST_CASE("arrow: a column of more values than there can be bytes is refused, also compressed") {
  constexpr uint64_t kForged = INT64_MAX;
  for (const std::string name : {"lists", "lists_zstd"}) {
    const std::string bytes = Bytes(name);
    int refused = 0;
    for (size_t at = 0; at + sizeof(kForged) <= bytes.size(); at += sizeof(kForged)) {
      // Some of these are the lengths of columns within lists.
      uint64_t length = 0;
      std::memcpy(&length, bytes.data() + at, sizeof(length));
      if (length != 5) continue;
      std::string changed = bytes;
      std::memcpy(changed.data() + at, &kForged, sizeof(kForged));
      INFO(name << ", byte " << at);
      auto source = ArrowInMemory::Open(InMemory(changed), OnDamage::kFail);
      if (!source.ok()) {
        refused += absl::StrContains(source.status().message(), absl::StrCat(kForged, " values"));
        continue;
      }
      for (uint64_t row = 0; row < (*source)->batches->num_rows(); ++row)
        (void)(*source)->Load(row, 1);
    }
    INFO(name);
    CHECK(refused > 0);
  }
}

TEST_CASE("arrow: columns of unlike values that name one dictionary are refused") {
  auto file = ArrowFile::Open(InMemory(Bytes("dictionaries")), OnDamage::kFail);
  REQUIRE(file.ok());
  std::vector<ArrowColumn> columns;
  for (const char* name : {"words", "numbers", "holes"})
    columns.push_back(*FindArrowColumn((*file)->schema(), {name}, /*to_values=*/true));
  const auto add = [&] {
    ArrowBatches batches(columns.size());
    std::vector<Damage> damage;
    return batches.AddFile(**file, columns, &damage);
  };
  CHECK(add().ok());
  columns[2].dictionary = columns[0].dictionary;
  CHECK(add().ok());
  columns[1].dictionary = columns[0].dictionary;
  const absl::Status status = add();
  CHECK(absl::IsDataLoss(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("is one of dictionary of utf8 and of dictionary of int64") ||
                 Catch::Contains("is one of dictionary of int64 and of dictionary of utf8"));
}

TEST_CASE("arrow: a null without a default is an error that names its row") {
  auto source = ArrowInMemory::Open(InMemory(Bytes("nulls")), OnDamage::kFail, /*is_filled=*/false);
  REQUIRE(source.ok());
  auto loaded = (*source)->Load(2, 2);
  REQUIRE(!loaded.ok());
  // Both rows have one: the first counts, whichever feature it is of.
  CHECK_THAT(std::string(loaded.status().message()),
             Catch::Contains("it is null, and there is no default_value") &&
                 Catch::Contains("row 2 of the file, row 2 of record batch 0"));
  loaded = (*source)->Load(3, 1);
  REQUIRE(!loaded.ok());
  CHECK_THAT(std::string(loaded.status().message()),
             Catch::Contains("row 3 of the file, row 0 of record batch 1"));
}

TEST_CASE("arrow: a reference is located by its row in the file") {
  auto source = ArrowInMemory::Open(InMemory(Bytes("nulls")), OnDamage::kFail);
  REQUIRE(source.ok());
  RecordRef reference;
  reference.offset = 4;
  const RecordRef place = (*source)->loader->Locate(reference);
  CHECK(place.offset == 4);
  CHECK(place.file == 0);
}

}  // namespace
}  // namespace penstock
