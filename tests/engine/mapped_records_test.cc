#include "server/engine/mapped_records.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "server/io/tfrecord_frame.h"
#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Frame;
using test::ScratchFolder;

std::unique_ptr<MappedFile> Map(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
  auto file = MappedFile::Map(path);
  REQUIRE(file.ok());
  return *std::move(file);
}

// What is taken from `offset` on, and where that ends.
struct Taken {
  std::vector<std::string> records;
  uint64_t end = 0;
};

Taken Take(const MappedFile& map, uint64_t offset) {
  RecordStore store;
  CellCache cells(store);
  RecordList records;
  Taken taken;
  taken.end = ReadMapped(map, 3, offset, cells, &records);
  for (const RecordRef& record : records) {
    CHECK(record.file == 3);
    CHECK(record.offset == offset);
    offset += record.length + 16;
    taken.records.emplace_back(reinterpret_cast<const char*>(record.data), record.length);
  }
  CHECK(taken.end == offset);
  // Every cell is in a record or in stock.
  CHECK(store.cells() == cells.size() + records.size());
  return taken;
}

std::string Flipped(std::string bytes, size_t position) {
  bytes[position] ^= 0x20;
  return bytes;
}

TEST_CASE("Whole, small, sound records are taken from a map, and nothing else is") {
  // Lengths around those of cells, and more records than are checked together.
  std::vector<std::string> values;
  std::string sound;
  for (size_t i = 0; i < 21; ++i) {
    values.emplace_back(i * 31, static_cast<char>('a' + i));
    sound += Frame(values.back());
  }
  const std::string small = Frame("small");
  const struct {
    const char* what;
    std::string behind;
  } cases[] = {
      {"the end", ""},
      {"a record that is read late", Frame(std::string(kLateRecordBytes + 1, 'x')) + small},
      {"a length that does not hold", Flipped(small, 3) + small},
      {"a length's checksum that does not hold", Flipped(small, 9) + small},
      {"data that does not hold", Flipped(small, 14) + small},
      {"data's checksum that does not hold", Flipped(small, 18) + small + small},
      {"a cut header", small.substr(0, 11)},
      {"a cut record", small.substr(0, small.size() - 1)},
      {"zeros", std::string(4096, '\0')},
  };
  const ScratchFolder folder;
  for (const auto& [what, behind] : cases) {
    INFO(what);
    const auto map = Map(folder / "data", sound + behind);
    const Taken taken = Take(*map, 0);
    CHECK(taken.records == values);
    CHECK(taken.end == sound.size());
    CHECK(Take(*map, taken.end).records.empty());
  }
  CHECK(Take(*Map(folder / "empty", ""), 0).records.empty());
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
      const uint8_t* const copy = CopyMapped(record, arena);
      const std::string copied(reinterpret_cast<const char*>(copy), length);
      CHECK(DataHolds(copy, length) == (position == 11));
      CHECK((copied == value) == (position == 11 || position >= 12 + length));
    }
  }
}

TEST_CASE("A chunk of a map goes on where the last one ended") {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) bytes += Frame(std::string(500, static_cast<char>('a' + i % 26)));
  const ScratchFolder folder;
  const auto map = Map(folder / "data", bytes);
  int records = 0;
  for (uint64_t offset = 0; offset < bytes.size();) {
    const Taken taken = Take(*map, offset);
    REQUIRE(!taken.records.empty());
    CHECK(taken.end - offset <= kChunkBytes);
    for (const std::string& record : taken.records)
      CHECK(record == std::string(500, static_cast<char>('a' + records++ % 26)));
    offset = taken.end;
  }
  CHECK(records == 1000);
}

TEST_CASE("fault 24: nothing is taken from a map whose file was cut") {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += Frame(std::string(500, 'x'));
  const ScratchFolder folder;
  const auto map = Map(folder / "data", bytes);
  REQUIRE(truncate((folder / "data").c_str(), 8192) == 0);
  CHECK(Take(*map, 0).records.empty());
  CHECK(map->torn());
}

}  // namespace
}  // namespace penstock
