#include "io/record/json_line_format.h"

#include <string>
#include <vector>

#include "io/record/record_access.h"
#include "io/record/record_stream.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"

namespace penstock {
namespace {

using test::Found;
using test::InMemory;
using Strings = std::vector<std::string>;

Found ReadAll(const std::string& bytes, OnDamage on_damage = OnDamage::kFail,
              bool any_bytes = false) {
  const RecordStreamOptions options = {.format = JsonLineFormat(any_bytes), .on_damage = on_damage};
  const Found found = test::ReadStream(InMemory(bytes), Compression::kNone, options);
  const Found gzip = test::ReadStream(InMemory(test::Gzip(bytes)), Compression::kGzip, options);
  const Found zstd = test::ReadStream(InMemory(test::Zstd(bytes)), Compression::kZstd, options);
  for (const Found* other : {&gzip, &zstd}) {
    CHECK((other->records == found.records));
    CHECK((other->offsets == found.offsets));
    CHECK((other->damage == found.damage));
    CHECK(other->error.code() == found.error.code());
  }
  return found;
}

TEST_CASE("Lines of JSON are lines that are not blank") {
  const struct {
    std::string text;
    Strings lines;
    std::vector<uint64_t> offsets;
  } cases[] = {
      {"", {}, {}},
      {"\n\n \t\r\n", {}, {}},
      {"{}", {"{}"}, {0}},
      {"{}\n", {"{}"}, {0}},
      {"{}\r\n", {"{}"}, {0}},
      {"\r\n{}\r", {"{}"}, {2}},
      {"\n\n1\n\n 2 \r\n\n3", {"1", " 2 ", "3"}, {2, 5, 11}},
      // Carriage returns inside of a line stay, and nothing looks into it.
      {"[1,\r2]\nno JSON\n", {"[1,\r2]", "no JSON"}, {0, 7}},
      {"\xef\xbb\xbf{}\n", {"\xef\xbb\xbf{}"}, {0}},
  };
  for (const auto& lines : cases) {
    INFO(lines.text);
    const Found found = ReadAll(lines.text);
    CHECK(found.error.ok());
    CHECK((found.records == lines.lines));
    CHECK((found.offsets == lines.offsets));
    CHECK(found.damage.empty());
  }
}

TEST_CASE("Lines of every length around a window's limits come whole") {
  std::string text;
  Strings lines;
  for (const size_t length :
       {2ul, 65535ul, 65536ul, 65537ul, 262143ul, 262144ul, 262145ul, 600000ul}) {
    for (const char* end : {"\n", "\r\n", "\n  \n"}) {
      lines.push_back("\"" + std::string(length - 2, static_cast<char>('a' + lines.size())) + "\"");
      text += lines.back() + end;
    }
  }
  for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord, OnDamage::kSkipShard}) {
    const Found found = ReadAll(text, on_damage);
    CHECK(found.error.ok());
    CHECK((found.records == lines));
  }
}

TEST_CASE("A line that is no JSON document is damage where damage is skipped") {
  const std::string text =
      "{\"a\": 1}\n{\"a\": \n\n[NaN]\r\n{} {}\n\"\xff\"\n{\"a\": 3}\n{\"a\": 4";
  const Found found = ReadAll(text, OnDamage::kSkipRecord);
  CHECK(found.error.ok());
  CHECK((found.records == Strings{"{\"a\": 1}", "[NaN]", "{\"a\": 3}"}));
  CHECK((found.offsets == std::vector<uint64_t>{0, 17, 34}));
  const DamageReason reason = DamageReason::kNoDocument;
  CHECK((found.damage ==
         std::vector<Damage>{{9, 7, reason}, {24, 6, reason}, {30, 4, reason}, {43, 7, reason}}));

  const Found any_bytes = ReadAll(text, OnDamage::kSkipRecord, /*any_bytes=*/true);
  CHECK((any_bytes.records == Strings{"{\"a\": 1}", "[NaN]", "\"\xff\"", "{\"a\": 3}"}));

  const Found shard = ReadAll(text, OnDamage::kSkipShard);
  CHECK((shard.records == Strings{"{\"a\": 1}"}));
  CHECK(shard.error_offset == 9);
  const Found plain =
      test::ReadStream(InMemory(text), Compression::kNone,
                       {.format = JsonLineFormat(false), .on_damage = OnDamage::kSkipShard});
  CHECK(std::string(plain.error.message()) ==
        "not JSON: expected a value, found the end (byte 6 of the text) (memory, record 1, offset "
        "9)");
}

TEST_CASE("fault 10: a line of JSON without an end stops at the limit of a record") {
  const std::string zeros(kMaxRecordBytes + (20 << 20), '0');
  const std::string bomb = test::Gzip("1\n" + zeros + "\n2\n", 1);
  const RecordStreamOptions fails = {.format = JsonLineFormat(false)};
  const Found failed = test::ReadStream(InMemory(bomb), Compression::kGzip, fails);
  CHECK((failed.records == Strings{"1"}));
  CHECK(failed.error_offset == 2);
  CHECK_THAT(std::string(failed.error.message()),
             Catch::StartsWith("line longer than limit: more than 268435456 bytes (memory, record "
                               "1, plain offset 2, compressed offset"));
  RecordStreamOptions skips = fails;
  skips.on_damage = OnDamage::kSkipRecord;
  const Found skipped = test::ReadStream(InMemory(bomb), Compression::kGzip, skips);
  CHECK(skipped.error.ok());
  CHECK((skipped.records == Strings{"1", "2"}));
  CHECK((skipped.damage == std::vector<Damage>{{2, zeros.size() + 1, DamageReason::kTooLong}}));
}

TEST_CASE("JSON lines: a record's ordinal counts what its reader counts") {
  const auto file = InMemory("no document\n{}\n[1]\n");
  CHECK(JsonLineFormat(false, OnDamage::kFail)->access()->OrdinalOf(file, 15) == 2);
  CHECK(JsonLineFormat(false, OnDamage::kSkipRecord)->access()->OrdinalOf(file, 15) == 1);
}

}  // namespace
}  // namespace penstock
