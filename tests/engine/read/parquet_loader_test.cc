#include "server/engine/read/parquet_loader.h"

#include <algorithm>
#include <string>
#include <vector>

#include "io/parquet/parquet_pages.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"
#include "tests/engine/read/parquet_in_memory.h"

namespace penstock {
namespace {

using test::InMemory;
using test::ParquetInMemory;
using testing::ReadGolden;

constexpr const char* kFiles[] = {"few_none_v1", "few_snappy_v2", "pages_v1", "pages_v2",
                                  "deltas_v2",   "long_v1",       "no_rows"};

std::string Bytes(const std::string& name) { return ReadGolden("parquet/" + name + ".parquet"); }

TEST_CASE("parquet: rows are the same one by one, together, and backwards") {
  for (const std::string name : kFiles) {
    INFO(name);
    auto source = ParquetInMemory::Open(InMemory(Bytes(name)), /*is_filled=*/true, /*times=*/2);
    INFO(source.status().ToString());
    REQUIRE(source.ok());
    const auto rows = static_cast<uint32_t>((*source)->stretches->num_rows());
    if (rows == 0) continue;
    const auto whole = (*source)->Load(0, rows);
    REQUIRE(whole.ok());
    std::vector<std::string> single(rows);
    size_t bytes = 0;
    for (uint32_t row = rows; row-- > 0;) {
      auto loaded = (*source)->Load(row, 1);
      INFO(loaded.status().ToString());
      REQUIRE(loaded.ok());
      single[row] = *loaded;
      bytes += loaded->size();
    }
    CHECK(whole->size() == bytes);
    CHECK(single[0] == single[rows / 2]);
    for (uint32_t row = 0; row < rows; ++row) {
      const RecordRef place = (*source)->loader->Locate({.offset = row});
      CHECK(place.file == row / (rows / 2));
      CHECK(place.offset == row % (rows / 2));
    }
  }
}

TEST_CASE("parquet: a null without a default is an error of its row, with its address") {
  auto source = ParquetInMemory::Open(InMemory(Bytes("few_none_v1")), /*is_filled=*/false);
  REQUIRE(source.ok());
  CHECK((*source)->Load(0, 2).ok());
  const auto null = (*source)->Load(0, 20);
  CHECK(absl::IsDataLoss(null.status()));
  CHECK_THAT(std::string(null.status().message()),
             Catch::Contains("feature \"f0\": the value is null") && Catch::Contains("memory") &&
                 Catch::Contains("row 2 of the file, row 2 of row group 0"));
}

TEST_CASE("parquet: any byte another one gives rows of their types, or an error with its address") {
  for (const std::string name : {"few_none_v1", "few_zstd_v2"}) {
    const std::string bytes = Bytes(name);
    for (size_t at = 0; at < bytes.size(); ++at) {
      for (const char value : {'\0', '\x7f', '\xff'}) {
        std::string changed = bytes;
        if (changed[at] == value) continue;
        changed[at] = value;
        auto source = ParquetInMemory::Open(InMemory(changed), at % 2 == 0);
        if (!source.ok()) continue;
        const uint64_t rows = std::min<uint64_t>((*source)->stretches->num_rows(), 20);
        INFO(name << ", byte " << at);
        for (uint64_t row = 0; row < rows; row += 3) {
          auto loaded = (*source)->Load(row, 1);
          if (loaded.ok()) continue;
          CHECK((absl::IsDataLoss(loaded.status()) || absl::IsUnimplemented(loaded.status())));
          CHECK_THAT(std::string(loaded.status().message()), Catch::Contains("feature \""));
        }
      }
    }
  }
}

TEST_CASE("parquet: a damaged page is read once, however many of its rows are asked for") {
  std::string bytes = Bytes("pages_v1");
  const auto sound = InMemory(bytes);
  const auto footer = ParquetFooter::Read(*sound);
  REQUIRE(footer.ok());
  const auto pages = ReadParquetPages(*sound, footer->chunk(0, 0));
  REQUIRE(pages.ok());
  bytes[pages->data[0].offset] ^= 1;
  const auto file = InMemory(bytes);
  auto source = ParquetInMemory::Open(file, /*is_filled=*/true);
  REQUIRE(source.ok());
  CHECK(absl::IsDataLoss((*source)->Load(0, 1).status()));
  const uint64_t read = file->bytes_read();
  for (uint64_t row = 0; row < 25; ++row) CHECK(absl::IsDataLoss((*source)->Load(row, 1).status()));
  CHECK(file->bytes_read() == read);
  // Rows of the next row group are sound.
  CHECK((*source)->Load(25, 10).ok());
}

TEST_CASE("parquet: large row groups are several stretches, of the same rows") {
  for (const std::string name : kFiles) {
    INFO(name);
    auto whole = ParquetInMemory::Open(InMemory(Bytes(name)));
    auto parts = ParquetInMemory::Open(InMemory(Bytes(name)), /*is_filled=*/true, /*times=*/1,
                                       /*stretch_bytes=*/name[0] == 'f' ? 100 : 2000);
    REQUIRE(whole.ok());
    REQUIRE(parts.ok());
    const uint64_t rows = (*whole)->stretches->num_rows();
    REQUIRE((*parts)->stretches->num_rows() == rows);
    if (rows == 0) continue;
    CHECK((*parts)->stretches->stretches().size() > (*whole)->stretches->stretches().size());
    const auto expected = (*whole)->Load(0, static_cast<uint32_t>(rows));
    const auto found = (*parts)->Load(0, static_cast<uint32_t>(rows));
    REQUIRE(expected.ok());
    REQUIRE(found.ok());
    CHECK(*found == *expected);
    for (uint64_t row = 0; row < rows; ++row) {
      const ParquetStretches& stretches = *(*parts)->stretches;
      const ParquetStretches::Stretch& stretch = stretches.stretches()[stretches.StretchOf(row)];
      CHECK(row >= stretch.first_row);
      CHECK(row - stretch.first_row < stretch.rows);
    }
  }
}

}  // namespace
}  // namespace penstock
