// Records that a format cuts out of a map (io/record/near_records.h), as ChunkReader hands them on.
#include "io/record/near_records.h"

#include <unistd.h>

#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/arena.h"
#include "io/record/json_line_format.h"
#include "io/record/record_access.h"
#include "io/record/tar_format.h"
#include "io/record/text_line_format.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/read_queue.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/tar_members.h"

namespace penstock {
namespace {

struct Found {
  std::vector<std::string> records;
  std::vector<uint64_t> offsets;
  std::vector<Damage> damage;
  absl::Status error;
  bool has_stream = false;  // whether all was not cut out of a map

  bool IsLike(const Found& other) const {
    return records == other.records && offsets == other.offsets && damage == other.damage &&
           error == other.error;
  }
};

// A record that is still in the file.
std::string ReadLate(FileTable& table, const ReadFormat& format, const RecordRef& record) {
  Arena arena;
  const auto file = table.Open(record.file);
  if (!file.ok()) return std::string(file.status().message());
  const auto data = format.access()->Read(**file, record.offset, record.length, arena);
  if (!data.ok()) return std::string(data.status().message());
  return std::string(data->begin(), data->end());
}

// A record as it counts: of a tar file its members, whose cell may leave out their heads.
std::string Counted(const ReadFormat& format, std::string record) {
  if (format.stream.format != TarFormat()) return record;
  std::string key, members;
  const absl::Status status = ForEachTarMember(
      {reinterpret_cast<const uint8_t*>(record.data()), record.size()}, &key,
      [&](const TarMember& member) {
        absl::StrAppend(&members, member.extension, "=",
                        absl::string_view(reinterpret_cast<const char*>(member.data.data()),
                                          member.data.size()),
                        ";");
        return absl::OkStatus();
      });
  return absl::StrCat(status.ok() ? key : status.ToString(), ":", members);
}

// What ChunkReader finds, request by request, as FileStream asks for it.
Found ReadAll(
    FileTable& table, const ReadFormat& format,
    const std::function<void(int)>& before_request = [](int) {}) {
  RecordStore store;
  ChunkReader reader(store);
  std::unique_ptr<RecordStream> stream;
  Found found;
  ReadRequest request;
  request.files = &table;
  request.format = &format;
  request.stream = &stream;
  for (int i = 0; !request.end_of_file && request.error.ok(); ++i) {
    before_request(i);
    request.offset = request.next_offset;
    request.ordinal = found.records.size();
    reader.Run(&request);
    for (const RecordRef& record : request.records) {
      const bool late = record.data == nullptr;
      found.records.push_back(Counted(
          format, late ? ReadLate(table, format, record)
                       : std::string(reinterpret_cast<const char*>(record.data), record.length)));
      found.offsets.push_back(record.offset);
    }
    found.damage.insert(found.damage.end(), request.damage.begin(), request.damage.end());
    store.Release(request.records);
  }
  CHECK(store.cells() == reader.spare_cells());
  found.error = request.error;
  found.has_stream = stream != nullptr;
  return found;
}

Manifest ManifestOf(const std::string& path,
                    const std::shared_ptr<const RecordFormat>& format = TarFormat()) {
  const auto opened = LocalFileSystem().Open(path);
  REQUIRE(opened.ok());
  return {{.path = path,
           .size_bytes = (*opened)->size(),
           .indexed = format,
           .version = (*opened)->version()}};
}

// Samples of two members, some of them late, with a folder and a text between them.
std::string MixedArchive(int samples) {
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < samples; ++i) {
    const size_t size = i % 41 == 40 ? 300'000 : i % 17 == 16 ? 9000 + i : 100 + i * 7919 % 5000;
    members.emplace_back(absl::StrCat(i, ".bin"), std::string(size, 'a' + i % 26));
    if (i % 5 == 0) members.emplace_back("README", "of no sample");
    members.emplace_back(absl::StrCat(i, ".cls"), absl::StrCat(i));
  }
  return test::TarArchive(members);
}

TEST_CASE("A tar file that is mapped gives the samples and errors of one that is read") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data.tar";
  const std::string whole = MixedArchive(200);
  std::vector<std::string> contents = {whole,
                                       whole.substr(0, whole.size() - 1024),
                                       whole.substr(0, whole.size() / 2 / 512 * 512),
                                       whole.substr(0, whole.size() / 3),
                                       std::string(whole.size(), '\0'),
                                       whole + whole};
  for (size_t at = 0; at < whole.size(); at += 150'000) {
    std::string bad = whole;
    // In a head, or in data, where nothing tells.
    bad[at / 512 * 512 + 150] ^= 0x11;
    contents.push_back(bad);
  }
  for (size_t i = 0; i < contents.size(); ++i) {
    CAPTURE(i);
    std::ofstream(path, std::ios::binary) << contents[i];
    const Manifest manifest = ManifestOf(path);
    for (const OnDamage on_damage :
         {OnDamage::kFail, OnDamage::kSkipRecord, OnDamage::kSkipShard}) {
      const ReadFormat format = {.stream = {.format = TarFormat(), .on_damage = on_damage}};
      FileTable read(LocalFileSystem(), manifest);
      FileTable mapped(LocalFileSystem(), manifest);
      mapped.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
      const Found by_stream = ReadAll(read, format);
      const Found near = ReadAll(mapped, format);
      CHECK(near.IsLike(by_stream));
      CHECK(mapped.MapOf(0) != nullptr);
      CHECK(by_stream.has_stream);
      // The file that is whole is not read at all.
      if (i == 0) CHECK(!near.has_stream);
      if (i == 0) CHECK(near.records.size() == 200);
    }
  }
}

TEST_CASE("fault 24: a tar file that is cut while it is mapped is an error behind what it has") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data.tar";
  std::vector<std::pair<std::string, std::string>> members;
  for (int i = 0; i < 500; ++i)
    members.emplace_back(absl::StrCat(i, ".bin"), std::string(3000, 'x'));
  const std::string bytes = test::TarArchive(members);
  constexpr size_t kSample = 512 + 3072;
  const ReadFormat format = {.stream = {.format = TarFormat(), .on_damage = OnDamage::kSkipRecord}};
  // In the middle of a page, and at the end of one.
  for (const size_t left : {200 * kSample + 1000, size_t{4096 * 200}, size_t{0}}) {
    CAPTURE(left);
    std::ofstream(path, std::ios::binary) << bytes;
    const Manifest manifest = ManifestOf(path);
    FileTable table(LocalFileSystem(), manifest);
    table.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
    const Found found = ReadAll(table, format, [&](int request) {
      if (request == 2) REQUIRE(truncate(path.c_str(), static_cast<off_t>(left)) == 0);
    });
    CHECK(absl::StrContains(found.error.message(), "became shorter"));
    CHECK(found.damage.empty());
    CHECK(found.records.size() >= 30);
    CHECK(found.records.size() <= std::max<size_t>(left / kSample, 40));
    for (const std::string& record : found.records)
      CHECK((record.substr(record.find('=') + 1) == std::string(3000, 'x') + ";"));
  }
}

// Lines of many sizes, some of them above what a cell of a small record holds; blank ones between.
std::string MixedLines(int lines, const std::string& line_end) {
  std::string text;
  for (int i = 0; i < lines; ++i) {
    const size_t size = i % 41 == 40 ? 300'000 : i % 17 == 16 ? 8180 + i % 24 : i * 7919 % 5000;
    text += absl::StrCat("{\"", i, "\": \"", std::string(size, 'a' + i % 26), "\"}", line_end);
    if (i % 5 == 0) text += " \t" + line_end;
  }
  return text;
}

struct LineCase {
  std::string bytes;
  bool is_cut_out = true;  // all of it, without reading
};

// `whole`: what a text line is that is usual, and a JSON line.
std::vector<LineCase> LineCases(bool is_text) {
  const std::string whole = MixedLines(150, "\n");
  const std::string spaces(70'000, ' ');
  return {{whole},
          {MixedLines(150, "\r\n")},
          {whole.substr(0, whole.size() - 1)},
          {whole + "no JSON, without an end"},
          {whole + "\n\n \r"},
          {whole + "\r\r", /*is_cut_out=*/!is_text},
          {whole + "[1,\r2]\n" + whole, /*is_cut_out=*/!is_text},
          {std::string(200'000, '\n')},
          {spaces + "\n" + spaces},
          {std::string("\x1f\x8b\x08\x00", 4) + whole, /*is_cut_out=*/false},
          {std::string("\x28\xb5\x2f\xfd", 4) + whole, /*is_cut_out=*/false},
          {std::string(whole.size(), '\0')}};
}

TEST_CASE("Lines that are mapped are those of a file that is read") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  for (const bool is_text : {false, true}) {
    const std::vector<LineCase> cases = LineCases(is_text);
    for (size_t i = 0; i < cases.size(); ++i) {
      CAPTURE(is_text);
      CAPTURE(i);
      std::ofstream(path, std::ios::binary) << cases[i].bytes;
      for (const OnDamage on_damage :
           {OnDamage::kFail, OnDamage::kSkipRecord, OnDamage::kSkipShard}) {
        const auto lines = is_text ? TextLineFormat() : JsonLineFormat(false, on_damage);
        const ReadFormat format = {.stream = {.format = lines, .on_damage = on_damage}};
        const Manifest manifest = ManifestOf(path, lines);
        FileTable read(LocalFileSystem(), manifest);
        FileTable mapped(LocalFileSystem(), manifest);
        mapped.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
        const Found by_stream = ReadAll(read, format);
        const Found near = ReadAll(mapped, format);
        CHECK(near.IsLike(by_stream));
        // No stream begins where the file is declared wrongly.
        CHECK(by_stream.has_stream ==
              !absl::StrContains(by_stream.error.message(), "is declared to be plain"));
        if (!by_stream.has_stream) continue;
        // Whether a line is a document is asked of what was read.
        const bool asks = !is_text && on_damage != OnDamage::kFail;
        CHECK(near.has_stream == (asks || !cases[i].is_cut_out));
      }
    }
  }
}

TEST_CASE(
    "fault 24: a file of lines that is cut while it is mapped is an error behind what it has") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  constexpr size_t kLine = 3001;
  const std::string text = "\"" + std::string(kLine - 3, 'x') + "\"";
  std::string bytes;
  for (int i = 0; i < 500; ++i) bytes += text + "\n";
  for (const auto& lines : {TextLineFormat(), JsonLineFormat(false, OnDamage::kFail)}) {
    const ReadFormat format = {.stream = {.format = lines}};
    // In the middle of a page, and at the end of one.
    for (const size_t left : {200 * kLine + 1000, size_t{4096 * 200}, size_t{0}}) {
      CAPTURE(left);
      std::ofstream(path, std::ios::binary) << bytes;
      const Manifest manifest = ManifestOf(path, lines);
      FileTable table(LocalFileSystem(), manifest);
      table.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
      const Found found = ReadAll(table, format, [&](int request) {
        if (request == 2) REQUIRE(truncate(path.c_str(), static_cast<off_t>(left)) == 0);
      });
      CHECK(absl::StrContains(found.error.message(), "became shorter"));
      CHECK(found.damage.empty());
      CHECK(found.records.size() >= 40);
      CHECK(found.records.size() <= std::max<size_t>(left / kLine, 50));
      for (const std::string& record : found.records) CHECK((record == text));
    }
  }
}

}  // namespace
}  // namespace penstock
