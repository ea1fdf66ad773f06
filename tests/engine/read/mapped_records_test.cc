#include "server/engine/read/mapped_records.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "io/file/mapped_file.h"
#include "io/record/tfrecord_frame.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/read_queue.h"
#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Found;
using test::Frame;
using test::ScratchFolder;

std::unique_ptr<MappedFile> Map(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  auto file = MappedFile::Map(path);
  REQUIRE(file.ok());
  return *std::move(file);
}

std::string Flipped(std::string bytes, size_t position) {
  bytes[position] ^= 0x20;
  return bytes;
}

TEST_CASE("Damage is found in the copy of a mapped record, at every byte of data and checksum") {
  const ScratchFolder folder;
  for (const size_t length : {0, 1, 59, 60, 61, 64, 200}) {
    const std::string value(length, 'd');
    const std::string frame = Frame(value);
    for (size_t position = 11; position < frame.size(); ++position) {
      INFO(length << " bytes, damaged at " << position);
      const auto map = Map(folder / "data", Flipped(frame, position));
      const RecordRef record = {.data = map->bytes() + 12,
                                .length = static_cast<uint32_t>(length),
                                .resolved = 1,
                                .in_map = 1};
      Arena arena;
      const uint8_t* const copy = CopyMapped(record, kRecordFooterBytes, arena);
      const std::string copied(reinterpret_cast<const char*>(copy), length);
      CHECK(DataHolds(copy, length) == (position == 11));
      CHECK((copied == value) == (position == 11 || position >= 12 + length));
    }
  }
}

// What a walk over frames found, as text.
struct Walked {
  std::vector<std::string> records;
  std::vector<uint64_t> offsets;
  MappedFrames frames;
  uint64_t cells = 0;  // that are taken behind it
};

Walked Walk(const std::string& bytes, uint64_t offset = 0) {
  RecordStore store;
  Walked walked;
  CellCache cells(store);
  RecordList records;
  // In memory of just that size.
  const std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  walked.frames = CopyMappedFrames(copy, offset, 7, cells, &records);
  for (const RecordRef& record : records) {
    CHECK(record.file == 7);
    CHECK(record.in_cell());
    walked.records.emplace_back(reinterpret_cast<const char*>(record.data), record.length);
    walked.offsets.push_back(record.offset);
  }
  walked.cells = store.cells() - cells.size();
  return walked;
}

TEST_CASE("Frames of a map are copied up to the first that is not whole, at every cut") {
  std::vector<std::string> values;
  std::vector<size_t> ends = {0};
  std::string bytes;
  for (const size_t length : {0, 1, 60, 63, 64, 65, 127, 129, 240, 240, 300, 5, 8192, 17}) {
    values.emplace_back(length, static_cast<char>('a' + values.size()));
    bytes += Frame(values.back());
    ends.push_back(bytes.size());
  }
  for (size_t cut = 0; cut <= bytes.size(); cut += cut < 1700 ? 1 : 97) {
    INFO("cut at " << cut);
    const Walked walked = Walk(bytes.substr(0, cut), 1000);
    size_t whole = 0;
    while (whole < values.size() && ends[whole + 1] <= cut) ++whole;
    CHECK(walked.frames.bytes == ends[whole]);
    CHECK(!walked.frames.next_is_late);
    CHECK((walked.records == std::vector<std::string>(values.begin(), values.begin() + whole)));
    for (size_t i = 0; i < walked.offsets.size(); ++i) CHECK(walked.offsets[i] == 1000 + ends[i]);
    CHECK(walked.cells == whole);
  }
}

TEST_CASE("Frames of a map are copied up to one that is damaged, at every byte") {
  const std::vector<std::string> values = {"first", std::string(70, 'b'), "", std::string(33, 'd')};
  std::string strip;
  for (const std::string& value : values) strip += Frame(value);
  // The damaged one is the first of them, in the middle, and behind some strips.
  for (const int before : {0, 1, 7, 8, 30}) {
    std::string bytes;
    for (int i = 0; i < before; ++i) bytes += Frame(std::string(i, 'x'));
    const size_t begin = bytes.size();
    bytes += strip + strip + strip;
    for (size_t position = begin; position < begin + strip.size(); ++position) {
      INFO("byte " << position << " behind " << before);
      const Walked walked = Walk(Flipped(bytes, position));
      size_t end = begin;
      size_t whole = before;
      for (const std::string& value : values) {
        if (position < end + 16 + value.size()) break;
        end += 16 + value.size();
        ++whole;
      }
      CHECK(walked.frames.bytes == end);
      CHECK(!walked.frames.next_is_late);
      CHECK(walked.records.size() == whole);
      CHECK(walked.cells == whole);
    }
  }
}

TEST_CASE("Frames of a map end in front of a late record, and say so") {
  const std::string small = Frame("small");
  const Walked walked = Walk(small + Frame(std::string(kLateRecordBytes + 1, 'l')) + small);
  CHECK(walked.records == std::vector<std::string>{"small"});
  CHECK(walked.frames.bytes == small.size());
  CHECK(walked.frames.next_is_late);
  CHECK(Walk(test::Header(kLateRecordBytes + 1)).frames.next_is_late);
  CHECK(!Walk(test::Header(kMaxRecordBytes + 1)).frames.next_is_late);
  CHECK(!Walk(Flipped(test::Header(kLateRecordBytes + 1), 9)).frames.next_is_late);
}

// What ChunkReader finds, request by request, until the end or an error.
Found ReadAll(
    FileTable& table, const ReadFormat& format,
    const std::function<void(int)>& before_request = [](int) {}) {
  RecordStore store;
  ChunkReader reader(store);
  Found found;
  ReadRequest request;
  request.files = &table;
  request.format = &format;
  for (int i = 0; !request.end_of_file && request.error.ok(); ++i) {
    before_request(i);
    request.offset = request.next_offset;
    request.expect_late = request.next_is_late;
    reader.Run(&request);
    for (const RecordRef& record : request.records) {
      const bool late = record.data == nullptr;
      found.records.push_back(
          late ? "late" : std::string(reinterpret_cast<const char*>(record.data), record.length));
      found.offsets.push_back(record.offset);
    }
    found.damage.insert(found.damage.end(), request.damage.begin(), request.damage.end());
    store.Release(request.records);
  }
  CHECK(store.cells() == reader.spare_cells());
  found.error = request.error;
  found.error_offset = request.next_offset;
  return found;
}

// A file of some chunks, of short, empty and late records, and the offsets of its frames.
std::string MixedFrames(std::vector<uint64_t>* offsets) {
  std::string bytes;
  for (int i = 0; bytes.size() < 4 * kChunkBytes; ++i) {
    const size_t length = i % 61 == 60 ? 0 : i % 97 == 96 ? 9000 + i : 100 + i * 7919 % 300;
    offsets->push_back(bytes.size());
    bytes += Frame(std::string(length, static_cast<char>('a' + i % 26)));
  }
  return bytes;
}

Manifest ManifestOf(const std::string& path) {
  const auto opened = LocalFileSystem().Open(path);
  REQUIRE(opened.ok());
  return {{.path = path,
           .size_bytes = (*opened)->size(),
           .indexed = TfrecordFormat(),
           .version = (*opened)->version()}};
}

TEST_CASE("A file that is mapped gives the records and errors of one that is read") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  std::vector<uint64_t> offsets;
  const std::string whole = MixedFrames(&offsets);
  std::vector<std::string> contents = {whole, whole.substr(0, whole.size() - 1),
                                       whole.substr(0, offsets.back() + 5),
                                       whole.substr(0, kChunkBytes + 1)};
  // Damage in lengths, data and checksums, at places all over the file.
  for (size_t i = 3; i < offsets.size(); i += 89) {
    for (const int at : {0, 3, 8, 12, 40}) contents.push_back(Flipped(whole, offsets[i] + at));
    contents.push_back(Flipped(whole, offsets[i] - 1));
  }
  for (const std::string& bytes : contents) {
    std::ofstream(path, std::ios::binary) << bytes;
    const Manifest manifest = ManifestOf(path);
    for (const OnDamage on_damage :
         {OnDamage::kFail, OnDamage::kSkipRecord, OnDamage::kSkipShard}) {
      const ReadFormat format = {.stream = {.on_damage = on_damage}};
      FileTable read(LocalFileSystem(), manifest);
      FileTable mapped(LocalFileSystem(), manifest);
      mapped.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
      const Found expected = ReadAll(read, format);
      CHECK((ReadAll(mapped, format) == expected));
      // Now from its beginning.
      CHECK((ReadAll(mapped, format) == expected));
      const bool is_mapped = mapped.MapOf(0) != nullptr;
      CHECK(is_mapped == (bytes.size() > kChunkBytes));
      CHECK(!expected.records.empty());
    }
  }
}

TEST_CASE("fault 24: a file that is cut while it is mapped is an error behind what it still has") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  std::string bytes;
  const std::string frame = Frame(std::string(240, 'r'));
  while (bytes.size() < 4 * kChunkBytes) bytes += frame;
  const ReadFormat format = {.stream = {.on_damage = OnDamage::kSkipShard}};
  // In the middle of a page, and at the end of one.
  for (const size_t left : {3 * kChunkBytes + 1000, 3 * kChunkBytes, size_t{0}}) {
    std::ofstream(path, std::ios::binary) << bytes;
    const Manifest manifest = ManifestOf(path);
    FileTable table(LocalFileSystem(), manifest);
    table.KeepMaps(std::make_shared<SharedMaps>(UINT64_MAX));
    const Found found = ReadAll(table, format, [&](int request) {
      if (request == 2) REQUIRE(truncate(path.c_str(), left) == 0);
    });
    CHECK(absl::StrContains(found.error.message(), "became shorter"));
    CHECK(found.damage.empty());
    CHECK(found.records.size() >= 2 * (kChunkBytes / frame.size()));
    CHECK(found.records.size() <= std::max(left, 2 * kChunkBytes) / frame.size());
    for (const std::string& record : found.records) CHECK(record == std::string(240, 'r'));
  }
}

}  // namespace
}  // namespace penstock
