// Files that pyarrow wrote (tests/golden/make_parquet_goldens.py): each codec, encoding, type and
// version of pages, and what pyarrow reads of them.
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_join.h"
#include "nlohmann/json.hpp"
#include "tests/io/parquet/parquet_source.h"
#include "tests/support/catch.h"
#include "tests/support/golden.h"

namespace penstock {
namespace {

using nlohmann::json;
using testing::ReadGolden;

const json& Goldens() {
  static const auto* const goldens = new json(json::parse(ReadGolden("parquet.json")));
  return *goldens;
}

// As a long table's hash is made of them.
uint64_t HashOf(const test::ParquetColumnRead& read, bool is_text) {
  if (!is_text) return testing::Fnv1a(read.numbers.data(), read.numbers.size());
  std::string bytes;
  for (const std::string& text : read.texts) {
    const auto size = static_cast<uint32_t>(text.size());
    bytes.append(reinterpret_cast<const char*>(&size), sizeof(size));
    bytes += text;
  }
  return testing::Fnv1a(bytes.data(), bytes.size());
}

void CheckColumn(const test::ParquetColumnRead& read, const json& expected) {
  const bool is_text = expected["dtype"] == "string";
  CHECK(read.nulls == expected["nulls"].get<std::vector<uint64_t>>());
  if (expected.contains("fnv")) {
    CHECK(HashOf(read, is_text) == expected["fnv"].get<uint64_t>());
  } else if (is_text) {
    std::vector<std::string> texts;
    for (const std::string text : expected["values"]) texts.push_back(absl::HexStringToBytes(text));
    CHECK(read.texts == texts);
  } else {
    CHECK(absl::BytesToHexString(read.numbers) == expected["hex"].get<std::string>());
  }
}

TEST_CASE("parquet: each file is what pyarrow reads of it, in stretches of any length") {
  size_t files = 0;
  for (const json& one : Goldens()["files"]) {
    if (!one.contains("table")) continue;
    const std::string name = one["file"];
    const std::string bytes = ReadGolden("parquet/" + name);
    const auto file = test::InMemory(bytes);
    const auto footer = ParquetFooter::Read(*file);
    INFO(name << ": " << footer.status());
    REQUIRE(footer.ok());
    CHECK(footer->num_rows() == one["rows"].get<uint64_t>());
    CHECK(footer->row_groups().size() == one["row_groups"].get<size_t>());
    const json& table = Goldens()["tables"][one["table"].get<std::string>()];
    REQUIRE(footer->columns().size() == table.size());
    const auto* const map = reinterpret_cast<const uint8_t*>(bytes.data());
    for (size_t i = 0; i < footer->columns().size(); ++i) {
      const ParquetColumn& column = footer->columns()[i];
      const std::string path = absl::StrJoin(column.path, ".");
      INFO(path);
      REQUIRE(table.contains(path));
      CHECK(DTypeName(column.dtype) == table[path]["dtype"].get<std::string>());
      for (const uint64_t stretch : {uint64_t{1} << 40, uint64_t{7}}) {
        for (const bool is_mapped : {false, true}) {
          const auto read =
              test::ReadColumn(*footer, i, {file.get(), is_mapped ? map : nullptr}, stretch);
          INFO(read.status());
          REQUIRE(read.ok());
          CheckColumn(*read, table[path]);
        }
      }
    }
    ++files;
  }
  CHECK(files > 20);
}

TEST_CASE("parquet: what is outside of the subset is refused by its name") {
  size_t files = 0;
  for (const json& one : Goldens()["files"]) {
    if (!one.contains("outside")) continue;
    INFO(one["file"]);
    const auto file = test::InMemory(ReadGolden("parquet/" + one["file"].get<std::string>()));
    const auto footer = ParquetFooter::Read(*file);
    REQUIRE(footer.ok());
    const auto read = test::ReadColumn(*footer, 0, {file.get()}, 100);
    INFO(read.status());
    CHECK(absl::IsUnimplemented(read.status()));
    CHECK_THAT(std::string(read.status().message()),
               Catch::Contains(one["outside"].get<std::string>()));
    ++files;
  }
  CHECK(files > 5);
}

TEST_CASE("parquet: what stands for a null is in its place") {
  const auto file = test::InMemory(ReadGolden("parquet/dictionary_zstd_v1.parquet"));
  const auto footer = ParquetFooter::Read(*file);
  REQUIRE(footer.ok());
  for (size_t i = 0; i < footer->columns().size(); ++i) {
    const ParquetColumn& column = footer->columns()[i];
    INFO(absl::StrJoin(column.path, "."));
    const size_t size = column.is_text() ? 3 : ParquetSlotBytes(column);
    const std::string fill(size, '\x01');
    const auto zeros = test::ReadColumn(*footer, i, {file.get()}, 100);
    const auto filled = test::ReadColumn(*footer, i, {file.get()}, 100, {}, fill);
    REQUIRE(filled.ok());
    CHECK(filled->nulls == zeros->nulls);
    test::ParquetColumnRead expected = *zeros;
    for (const uint64_t row : zeros->nulls) {
      if (column.is_text()) {
        expected.texts[row] = fill;
      } else {
        expected.numbers.replace(row * size, size, fill);
      }
    }
    CHECK(filled->numbers == expected.numbers);
    CHECK(filled->texts == expected.texts);
  }
}

}  // namespace
}  // namespace penstock
