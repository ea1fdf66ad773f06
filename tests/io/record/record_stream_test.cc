#include "io/record/record_stream.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "io/record/fixed_length_format.h"
#include "io/record/text_line_format.h"
#include "tests/support/catch.h"
#include "tests/support/compressed.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"

namespace penstock {
namespace {

using test::Found;
using test::InMemory;
using Strings = std::vector<std::string>;

const RecordStreamOptions kLines = {.format = TextLineFormat()};

RecordStreamOptions FixedLength(uint64_t record, uint64_t header = 0, uint64_t footer = 0) {
  return {.format = FixedLengthFormat(
              {.record_bytes = record, .header_bytes = header, .footer_bytes = footer})};
}

// The same of a plain file, a gzip and a zstd file.
Found ReadAll(const std::string& bytes, const RecordStreamOptions& options) {
  const Found found = test::ReadStream(InMemory(bytes), Compression::kNone, options);
  const Found gzip = test::ReadStream(InMemory(test::Gzip(bytes)), Compression::kGzip, options);
  const Found zstd = test::ReadStream(InMemory(test::Zstd(bytes)), Compression::kZstd, options);
  for (const Found* other : {&gzip, &zstd}) {
    CHECK((other->records == found.records));
    CHECK((other->offsets == found.offsets));
    CHECK((other->damage == found.damage));
    CHECK(other->error.code() == found.error.code());
    CHECK(other->error_offset == found.error_offset);
  }
  return found;
}

TEST_CASE("Lines are those of tf.data's TextLineDataset") {
  const std::string large(300000, 'x');
  const struct {
    std::string text;
    Strings lines;
  } cases[] = {
      {"", {}},
      {"\n", {""}},
      {"\n\n", {"", ""}},
      {"a", {"a"}},
      {"a\n", {"a"}},
      {"a\r\n", {"a"}},
      {"a\r", {"a"}},
      {"a\n\r", {"a"}},
      {"\r\n", {""}},
      {"a\nb", {"a", "b"}},
      {"a\r\n\r\nb\r\n", {"a", "", "b"}},
      {std::string("a\0b\n", 4), {std::string("a\0b", 3)}},
      {large + "\n" + large + "\r\nend", {large, large, "end"}},
      // Not tf.data's, which drops it.
      {"a\rb\n", {"ab"}},
      {"\ra\r\r\nb", {"a", "b"}},
  };
  for (const auto& line : cases) {
    INFO(line.text.substr(0, 20));
    const Found found = ReadAll(line.text, kLines);
    CHECK(found.error.ok());
    CHECK((found.records == line.lines));
  }
}

TEST_CASE("Lines of every length around a chunk's and a window's limits come whole") {
  std::string text;
  Strings lines;
  std::vector<uint64_t> offsets;
  for (const size_t length : {0ul, 1ul, 65534ul, 65535ul, 65536ul, 65537ul, 262143ul, 262144ul,
                              262145ul, 600000ul, 3ul}) {
    for (const char* end : {"\n", "\r\n"}) {
      offsets.push_back(text.size());
      lines.emplace_back(length, static_cast<char>('a' + lines.size()));
      text += lines.back() + end;
    }
  }
  const Found found = ReadAll(text, kLines);
  CHECK(found.error.ok());
  CHECK((found.records == lines));
  CHECK((found.offsets == offsets));
}

TEST_CASE("fault 10: a line without an end stops at the limit of a record") {
  const std::string zeros(kMaxRecordBytes + (20 << 20), '\0');
  const std::string bomb = test::Gzip("first\n" + zeros + "\nlast\n", 1);
  const Found failed = test::ReadStream(InMemory(bomb), Compression::kGzip, kLines);
  CHECK((failed.records == Strings{"first"}));
  CHECK(failed.error_offset == 6);
  CHECK_THAT(std::string(failed.error.message()),
             Catch::StartsWith("line longer than limit: more than 268435456 bytes (memory, record "
                               "1, plain offset 6, compressed offset"));
  RecordStreamOptions skip = kLines;
  skip.on_damage = OnDamage::kSkipRecord;
  const Found skipped = test::ReadStream(InMemory(bomb), Compression::kGzip, skip);
  CHECK(skipped.error.ok());
  CHECK((skipped.records == Strings{"first", "last"}));
  CHECK((skipped.damage == std::vector<Damage>{{6, zeros.size() + 1, DamageReason::kTooLong}}));
}

TEST_CASE("Fixed-length records, with header and footer") {
  const struct {
    std::string bytes;
    RecordStreamOptions options;
    Strings records;
  } cases[] = {
      {"", FixedLength(3), {}},
      {"", FixedLength(3, 2, 2), {}},
      {"abcdef", FixedLength(3), {"abc", "def"}},
      {"abcdef", FixedLength(1), {"a", "b", "c", "d", "e", "f"}},
      {"Habcdef", FixedLength(3, 1), {"abc", "def"}},
      {"abcdefFF", FixedLength(3, 0, 2), {"abc", "def"}},
      {"HHabcFFFFFFF", FixedLength(3, 2, 7), {"abc"}},
      {"HHFF", FixedLength(3, 2, 2), {}},
  };
  for (const auto& fixed : cases) {
    INFO(fixed.bytes);
    const Found found = ReadAll(fixed.bytes, fixed.options);
    CHECK(found.error == absl::OkStatus());
    CHECK((found.records == fixed.records));
  }
  const std::string large(3 * 100000, 'x');
  CHECK(ReadAll("H" + large + "FF", FixedLength(100000, 1, 2)).records.size() == 3);
}

TEST_CASE("A rest that is no whole record is an error with figures, or skipped") {
  const struct {
    std::string bytes;
    RecordStreamOptions options;
    Strings records;
    std::string message;
    Damage damage;
  } cases[] = {
      {"abcde",
       FixedLength(3),
       {"abc"},
       "the file does not end in a whole record: 2 bytes are left, expected 3 of a record and 0 of "
       "the footer, or the footer (memory, record 1, offset 3)",
       {3, 2, DamageReason::kPartialRecord}},
      {"abcF",
       FixedLength(3, 0, 2),
       {},
       "the file does not end in a whole record: 4 bytes are left, expected 3 of a record and 2 of "
       "the footer, or the footer (memory, record 0, offset 0)",
       {0, 4, DamageReason::kPartialRecord}},
      {"HH",
       FixedLength(3, 4),
       {},
       "the file is shorter than its header: 2 < 4 bytes (memory, record 0, offset 0)",
       {0, 2, DamageReason::kPartialRecord}},
  };
  for (auto fixed : cases) {
    INFO(fixed.bytes);
    const Found found = ReadAll(fixed.bytes, fixed.options);
    CHECK((found.records == fixed.records));
    CHECK(found.error.code() == absl::StatusCode::kDataLoss);
    CHECK(std::string(found.error.message()) == fixed.message);
    fixed.options.on_damage = OnDamage::kSkipRecord;
    const Found skipped = ReadAll(fixed.bytes, fixed.options);
    CHECK((skipped.records == fixed.records));
    CHECK((skipped.damage == std::vector<Damage>{fixed.damage}));
  }
}

TEST_CASE("fault 63: sizes out of range are refused before anything is opened") {
  for (const RecordStreamOptions& options :
       {FixedLength(0), FixedLength(kMaxRecordBytes + 1), FixedLength(~uint64_t{0}),
        FixedLength(1, ~uint64_t{0}), FixedLength(1, 0, ~uint64_t{0} - 1)}) {
    const auto stream = RecordStream::Open(InMemory("abc"), Compression::kNone, options);
    CHECK(stream.status().code() == absl::StatusCode::kInvalidArgument);
    CHECK_THAT(std::string(stream.status().message()), Catch::Contains("_bytes: expected "));
  }
}

TEST_CASE("fault 9: compressed text and fixed-length records that are declared plain are named") {
  for (const RecordStreamOptions& options : {kLines, FixedLength(1)}) {
    const Found gzip = test::ReadStream(InMemory(test::Gzip("x")), Compression::kNone, options);
    CHECK(gzip.records.empty());
    CHECK(gzip.error.message() ==
          "the file is declared to be plain but looks like gzip: declare its compression (memory, "
          "offset 0)");
    const Found zstd = test::ReadStream(InMemory(test::Zstd("x")), Compression::kNone, options);
    CHECK(zstd.error.code() == absl::StatusCode::kDataLoss);
  }
}

TEST_CASE("A stream that begins at a record gives the same tail") {
  std::string bytes;
  std::string text;
  for (int i = 0; i < 3000; ++i) {
    bytes += test::Frame(std::string(i % 200, 'x') + absl::StrCat(i));
    text += std::string(i % 200, 'x') + absl::StrCat(i, "\n");
  }
  const std::pair<std::string, RecordStreamOptions> cases[] = {
      {bytes, {}}, {text, kLines}, {text.substr(0, 7 + 4000 + 2), FixedLength(40, 7, 2)}};
  for (auto [file, options] : cases) {
    options.start_offset = 0;
    options.start_ordinal = 0;
    const Found whole = ReadAll(file, options);
    CHECK(whole.error.ok());
    for (const size_t start : {size_t{0}, size_t{1}, size_t{57}, whole.records.size() - 1}) {
      options.start_offset = whole.offsets[start];
      options.start_ordinal = start;
      const Found tail = ReadAll(file, options);
      CHECK(tail.error.ok());
      CHECK((tail.records == Strings(whole.records.begin() + start, whole.records.end())));
      CHECK(tail.offsets[0] == whole.offsets[start]);
    }
  }
}

TEST_CASE("A plain file that shrinks while it is read is an error with any policy") {
  std::string text(1000000, '\n');
  for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord}) {
    auto file = InMemory(text);
    file->Shrink(500000);
    RecordStreamOptions options = kLines;
    options.on_damage = on_damage;
    const Found found = test::ReadStream(file, Compression::kNone, options);
    CHECK(found.records.size() == 500000);
    CHECK_THAT(std::string(found.error.message()), Catch::StartsWith("the file became shorter"));
  }
}

}  // namespace
}  // namespace penstock
