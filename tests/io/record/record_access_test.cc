// What is true of the records of every format that has an index: it finds those that the format's
// stream finds, in any order, and by the same rules about damage.
#include "io/record/record_access.h"

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "io/record/csv_format.h"
#include "io/record/fixed_length_format.h"
#include "io/record/index_file.h"
#include "io/record/json_line_format.h"
#include "io/record/named_access.h"
#include "io/record/near_records.h"
#include "io/record/record_chunk.h"
#include "io/record/record_index.h"
#include "io/record/record_stream.h"
#include "io/record/text_line_format.h"
#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Found;
using test::InMemory;

struct Case {
  std::string name;
  std::shared_ptr<const RecordFormat> format;
  std::string bytes;
};

std::vector<Case> Cases() {
  const std::string large(300000, 'l');
  std::string lines;
  for (int i = 0; i < 3000; ++i) lines += absl::StrCat("line ", i, i % 7 == 0 ? "\r\n" : "\n");
  std::string frames;
  for (const size_t length : {3, 0, 9000, 70000}) frames += test::Frame(std::string(length, 'x'));
  const std::shared_ptr<const RecordFormat> text = TextLineFormat();
  const auto fixed = [](uint64_t record, uint64_t header, uint64_t footer) {
    return FixedLengthFormat(
        {.record_bytes = record, .header_bytes = header, .footer_bytes = footer});
  };
  const auto csv = CsvRecordFormat({.field_delim = ',', .uses_quotes = true, .skips_header = true});
  return {
      {"no lines", text, ""},
      {"one line without an end", text, "a"},
      {"empty lines", text, "\n\n\r\n\n"},
      {"a carriage return behind the last line", text, "a\nb\n\r\r"},
      {"a carriage return in the last line", text, "a\nb\r\rc\r"},
      {"long lines", text, large + "\n" + large + "\r\nend"},
      {"many lines", text, lines},
      {"frames", TfrecordFormat(), frames},
      {"records of one length", fixed(5, 3, 2), "hhh" + std::string(50, 'r') + "ff"},
      {"records of one length, a rest", fixed(5, 3, 2), "hhh" + std::string(52, 'r') + "ff"},
      {"records of one length, shorter than the header", fixed(5, 3, 2), "hh"},
      {"records of one length, no footer", fixed(5, 3, 2), "hhhrrr"},
      {"records of one length, none", fixed(5, 0, 0), ""},
      {"JSON lines", JsonLineFormat(false), "\n{}\r\n\n 1 \n \t\n\n[2,\r3]\n\"end\"\r"},
      {"JSON lines of which the last is blank", JsonLineFormat(true), "1\n2\r\n\n  \r"},
      {"csv", csv, "a,b\n1,\"x\ny\"\r\n2,z\r\r\n3,\"\"\"\n\"\n4,end"},
  };
}

Found ReadAll(const Case& c, OnDamage on_damage) {
  RecordStreamOptions options;
  options.format = c.format;
  options.on_damage = on_damage;
  return test::ReadStream(InMemory(c.bytes), Compression::kNone, options);
}

TEST_CASE("An index of any format finds the records that its stream finds") {
  for (const Case& c : Cases()) {
    CAPTURE(c.name);
    const RecordAccess& access = *c.format->access();
    const auto file = InMemory(c.bytes);
    NoIndexStore nowhere;
    for (const OnDamage on_damage : {OnDamage::kFail, OnDamage::kSkipRecord}) {
      const Found found = ReadAll(c, on_damage);
      const auto index = LoadOrBuildIndex(file, access, nowhere, {.on_damage = on_damage});
      REQUIRE(index.ok() == found.error.ok());
      if (!index.ok()) {
        CHECK(index.status().message() == found.error.message());
        continue;
      }
      REQUIRE((*index)->size() == found.records.size());
      CHECK(((*index)->damage() == found.damage));
      Arena arena;
      for (uint64_t i = 0; i < (*index)->size(); ++i) {
        const uint64_t offset = (*index)->offset(i);
        CHECK(offset == found.offsets[i]);
        const auto data = access.Read(*file, offset, (*index)->length(i), arena);
        REQUIRE(data.ok());
        CHECK((std::string(data->begin(), data->end()) == found.records[i]));
        CHECK(access.IsAt(*file, offset, (*index)->length(i)));
        CHECK(access.OrdinalOf(file, offset) == i);
      }
    }
  }
}

// Cut out of memory until something is not near, or is unusual, and by the stream from there on.
Found ReadNear(const Case& c, const NearRecords& near, uint64_t at_a_time) {
  const auto file = InMemory(c.bytes);
  file->Lend();
  Found found;
  Arena arena;
  for (uint64_t at = 0;;) {
    const NearRecords::Cut cut = near.CutNear(
        *file, at, at_a_time, [&](uint64_t offset, uint32_t length, NearRecords::Parts parts) {
          CHECK(parts.size() == (length > kLateRecordBytes ? 0 : 1));
          absl::Span<const uint8_t> bytes;
          if (!parts.empty()) {
            bytes = parts.front();
            CHECK(bytes.size() == length);
          } else {
            bytes = *c.format->access()->Read(*file, offset, length, arena);
          }
          found.records.emplace_back(bytes.begin(), bytes.end());
          found.offsets.push_back(offset);
        });
    if (cut.is_end) return found;
    if (cut.next_offset == at) {
      const Found rest = test::ReadStream(
          file, Compression::kNone,
          {.format = c.format, .start_offset = at, .start_ordinal = found.records.size()});
      found.records.insert(found.records.end(), rest.records.begin(), rest.records.end());
      found.offsets.insert(found.offsets.end(), rest.offsets.begin(), rest.offsets.end());
      return found;
    }
    at = cut.next_offset;
  }
}

TEST_CASE("Records that are cut out of memory are those that the stream finds") {
  std::vector<Case> cases = Cases();
  // The JSON lines of nobody who passes damage over.
  for (Case& c : cases) {
    if (c.format == JsonLineFormat(false)) c.format = JsonLineFormat(false, OnDamage::kFail);
    if (c.format == JsonLineFormat(true)) c.format = JsonLineFormat(true, OnDamage::kFail);
  }
  size_t num_near = 0;
  for (const Case& c : cases) {
    const auto* const near = dynamic_cast<const NearRecords*>(c.format->access());
    if (near == nullptr) continue;
    CAPTURE(c.name);
    ++num_near;
    const Found by_stream = ReadAll(c, OnDamage::kFail);
    for (const uint64_t at_a_time : {uint64_t{1}, uint64_t{3000}, uint64_t{1} << 40}) {
      const Found found = ReadNear(c, *near, at_a_time);
      CHECK((found.records == by_stream.records));
      CHECK((found.offsets == by_stream.offsets));
    }
  }
  CHECK(num_near == 9);
}

TEST_CASE(
    "A line of the largest size is one for the stream and for the index, a longer one for none") {
  const auto format = TextLineFormat();
  for (const uint64_t length : {kMaxRecordBytes - 1, kMaxRecordBytes}) {
    CAPTURE(length);
    const auto file = InMemory(std::string(length, 'l') + "\nend\n");
    const bool fits = length < kMaxRecordBytes;
    auto stream = *RecordStream::Open(file, Compression::kNone,
                                      {.format = format, .on_damage = OnDamage::kSkipRecord});
    uint64_t records = 0;
    RecordChunk chunk;
    do {
      stream->Next(&chunk);
      records += chunk.records.size();
    } while (chunk.error.ok() && !chunk.end_of_file);
    CHECK(records == (fits ? 2 : 1));
    NoIndexStore nowhere;
    const auto index =
        LoadOrBuildIndex(file, *format->access(), nowhere, {.on_damage = OnDamage::kSkipRecord});
    REQUIRE(index.ok());
    REQUIRE((*index)->size() == records);
    Arena arena;
    const auto data =
        format->access()->Read(*file, (*index)->offset(0), (*index)->length(0), arena);
    REQUIRE(data.ok());
    CHECK(data->size() == (fits ? length : 3));
  }
}

TEST_CASE("A stream goes on behind any record that an index knows") {
  for (const Case& c : Cases()) {
    CAPTURE(c.name);
    const auto file = InMemory(c.bytes);
    NoIndexStore nowhere;
    const auto index =
        LoadOrBuildIndex(file, *c.format->access(), nowhere, {.on_damage = OnDamage::kSkipRecord});
    REQUIRE(index.ok());
    const Found all = ReadAll(c, OnDamage::kSkipRecord);
    const uint64_t step = std::max<uint64_t>((*index)->size() / 20, 1);
    for (uint64_t i = 0; i < (*index)->size(); i += step) {
      RecordStreamOptions options;
      options.format = c.format;
      options.on_damage = OnDamage::kSkipRecord;
      options.start_offset = (*index)->end(i);
      const Found rest = test::ReadStream(file, Compression::kNone, options);
      CHECK((rest.records ==
             std::vector<std::string>(all.records.begin() + i + 1, all.records.end())));
      CHECK((rest.damage == all.damage));
    }
  }
}

TEST_CASE("An index that is kept is the one that was built, for its format alone") {
  const test::ScratchFolder folder;
  for (const Case& c : Cases()) {
    CAPTURE(c.name);
    const RecordAccess& access = *c.format->access();
    const std::string path = folder / c.name;
    std::ofstream(path, std::ios::binary) << c.bytes;
    const auto file = *LocalFileSystem().Open(path);
    FolderIndexStore store(LocalFileSystem(), "");
    IndexReport report;
    const IndexOptions options = {.on_damage = OnDamage::kSkipRecord};
    const auto built = LoadOrBuildIndex(file, access, store, options, &report);
    REQUIRE(built.ok());
    CHECK(report.built == access.is_kept());
    const auto kept = LoadOrBuildIndex(file, access, store, options, &report);
    REQUIRE(kept.ok());
    CHECK(!report.built);
    REQUIRE((*kept)->size() == (*built)->size());
    for (uint64_t i = 0; i < (*kept)->size(); ++i) {
      CHECK((*kept)->offset(i) == (*built)->offset(i));
      CHECK((*kept)->length(i) == (*built)->length(i));
    }
    if (!access.is_kept()) continue;
    const auto other = CsvRecordFormat({.field_delim = ';'});
    CHECK(LoadOrBuildIndex(file, *other->access(), store, options, &report).ok());
    CHECK(report.built);
    CHECK(absl::StartsWith(report.rejected, "it is of records of another format"));
  }
}

TEST_CASE("Bytes that are no record any more are not taken for one") {
  const RecordAccess& lines = *TextLineFormat()->access();
  const auto opens = [&](std::string bytes, bool at_end, std::string* data) {
    uint64_t length = bytes.size();
    if (!lines.Open(reinterpret_cast<uint8_t*>(bytes.data()), &length, at_end)) return false;
    *data = bytes.substr(0, length);
    return true;
  };
  std::string data;
  CHECK(opens("a\rb\r\n", false, &data));
  CHECK(data == "ab");
  CHECK(opens("a", true, &data));
  CHECK(!opens("a", false, &data));
  CHECK(!opens("a\nb\n", false, &data));
  CHECK(!opens("", true, &data));
  // A line begins behind another one's end.
  CHECK(lines.IsAt(*InMemory("ab\ncd\n"), 3, 3));
  CHECK(!lines.IsAt(*InMemory("ab\ncd\n"), 4, 2));
}

TEST_CASE("Who reads files without a spec knows formats by their names") {
  CHECK(AccessNamed("text_line") == TextLineFormat()->access());
  CHECK(AccessNamed("tfrecord") == TfrecordFormat()->access());
  CHECK(AccessNamed("json_lines") == JsonLineFormat(/*any_bytes=*/false)->access());
  CHECK(AccessNamed("csv") == nullptr);
  CHECK(absl::StrContains(NamesOfAccesses(), "tfrecord, text_line"));
}

}  // namespace
}  // namespace penstock
