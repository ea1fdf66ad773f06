// Files of elements: what they say of their elements, and that nothing of it is believed which does
// not hold. How they are used is tested in engine/file_kept_test.cc.
#include "io/element/element_file.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "io/element/element_bytes.h"
#include "io/element/element_file_writer.h"
#include "io/file/crc32c.h"
#include "io/record/tfrecord_frame.h"
#include "tests/support/catch.h"
#include "tests/support/recorded_disk.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::RecordedDisk;
using test::ScratchFolder;

// Has these elements added and written.
std::unique_ptr<ElementFileWriter> Writer(Disk& disk, const std::string& path,
                                          const std::vector<std::string>& elements,
                                          uint64_t first = 0) {
  ElementSchema schema;
  schema.structure = "null";
  schema.signature = {{"value", {DType::kString, {}}}};
  auto writer = ElementFileWriter::Create(disk, path, ElementKey{1, 2, 3}, schema, first);
  REQUIRE(writer.ok());
  std::vector<ElementFile::Element> places;
  std::vector<const uint8_t*> data;
  for (const std::string& element : elements) {
    const auto length = static_cast<uint32_t>(element.size());
    const uint64_t bytes = (*writer)->BytesWith(length);
    places.push_back((*writer)->Add({.offset = places.size(), .length = length}));
    CHECK((*writer)->bytes() == bytes);
    data.push_back(reinterpret_cast<const uint8_t*>(element.data()));
  }
  REQUIRE((*writer)->Write(0, absl::MakeSpan(places), data).ok());
  return *std::move(writer);
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

// Whether the file can be opened and all of its elements hold.
bool Holds(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
  const auto file = ElementFile::Map(path);
  if (!file.ok()) return false;
  for (uint64_t i = 0; i < (*file)->size(); ++i) {
    const ElementFile::Element element = (*file)->element(i);
    const uint8_t* const data = (*file)->data() + element.at;
    if (!ElementHolds(data - kElementFrameBytes, data, element.length)) return false;
  }
  return true;
}

// Gives a file whose numbers were changed on purpose the checksums that it should have.
std::string Sealed(std::string file) {
  auto* const bytes = reinterpret_cast<uint8_t*>(file.data());
  uint8_t* const footer = bytes + file.size() - kElementFooterBytes;
  StoreU32(bytes + 60, MaskCrc32c(Crc32c(bytes, 60)));
  const uint64_t schema_at = LoadU64(footer + 16);
  const uint64_t tail = LoadU32(footer + 24) + LoadU64(footer + 8) * kElementIndexBytes;
  StoreU32(footer + 28, MaskCrc32c(Crc32c(bytes + schema_at, tail)));
  StoreU32(footer + 60, MaskCrc32c(Crc32c(footer, 60)));
  return file;
}

TEST_CASE("fault 31: every flipped bit of a file of elements is noticed") {
  const ScratchFolder folder;
  const std::string path = folder / "elements";
  const std::vector<std::string> elements = {"hello", std::string(40, 'x'), "",
                                             std::string(1500, 'y')};
  REQUIRE(Writer(LocalDisk(), path, elements, 7)->Finish(4, true).ok());
  const std::string good = Read(path);
  std::string padding(good.size(), 0);
  {
    const auto file = ElementFile::Map(path);
    REQUIRE(file.ok());
    CHECK((*file)->first() == 7);
    CHECK((*file)->whole());
    CHECK((*file)->file_bytes() == good.size());
    REQUIRE((*file)->size() == 4);
    // Bytes between elements belong to nobody.
    uint64_t end = kElementHeaderBytes;
    for (uint64_t i = 0; i < 4; ++i) {
      const ElementFile::Element element = (*file)->element(i);
      CHECK(good.substr(element.at, element.length) == elements[i]);
      for (; end < element.at - kElementFrameBytes; ++end) padding[end] = 1;
      end = element.at + element.length;
    }
  }
  REQUIRE(Holds(path, good));
  for (size_t at = 0; at < good.size(); ++at) {
    INFO("byte " << at << " of " << good.size());
    std::string bad = good;
    bad[at] ^= 1 << at % 8;
    CHECK(Holds(path, bad) == (padding[at] != 0));
  }
}

TEST_CASE(
    "fault 31: a file of elements with impossible numbers is refused, its checksums "
    "notwithstanding") {
  const ScratchFolder folder;
  const std::string path = folder / "elements";
  REQUIRE(Writer(LocalDisk(), path, {"hello", "world", "again"})->Finish(3, true).ok());
  const std::string good = Read(path);
  const size_t footer = good.size() - kElementFooterBytes;
  const size_t index = footer - 3 * kElementIndexBytes;
  REQUIRE(Sealed(good) == good);
  const struct {
    size_t at;
    uint64_t value;
  } cases[] = {
      {16, 9},                     // another key than the footer's
      {32, UINT64_MAX - 2},        // elements whose numbers wrap
      {footer, index + 32},        // an index elsewhere
      {footer + 8, 2},             // fewer elements than the index has room for
      {footer + 8, 4},             // and more
      {footer + 16, 8},            // a schema in the header
      {index, 64},                 // no room for a frame
      {index + 32, 129},           // no multiple of 16
      {index + 32, good.size()},   // behind the elements
      {index + 64 + 24, 100'000},  // longer than what is there
  };
  for (const auto& c : cases) {
    std::string bad = good;
    StoreU64(reinterpret_cast<uint8_t*>(bad.data()) + c.at, c.value);
    INFO("at " << c.at << " value " << c.value);
    // Before anybody looks at an element.
    std::filesystem::remove(path);
    std::ofstream(path, std::ios::binary) << Sealed(bad);
    CHECK(ElementFile::Map(path).status().code() == absl::StatusCode::kDataLoss);
  }
}

TEST_CASE(
    "fault 30: a file of elements that has no room for its end keeps what it can, and says that "
    "there is more") {
  const std::vector<std::string> elements(20, std::string(100, 'x'));
  uint64_t whole_bytes = 0;
  {
    const ScratchFolder folder;
    REQUIRE(Writer(LocalDisk(), folder / "elements", elements)->Finish(20, true).ok());
    whole_bytes = std::filesystem::file_size(folder / "elements");
  }
  int cut = 0;
  for (uint64_t room = whole_bytes; room > whole_bytes - 700; room -= 9) {
    INFO("room " << room);
    const ScratchFolder folder;
    const std::string path = folder / "elements";
    RecordedDisk disk;
    disk.SetRoom(room);
    REQUIRE(Writer(disk, path, elements)->Finish(20, true).ok());
    const auto file = ElementFile::Map(path);
    INFO(file.status().ToString());
    REQUIRE(file.ok());
    CHECK((*file)->file_bytes() <= room);
    CHECK((*file)->whole() == ((*file)->size() == 20));
    cut += (*file)->size() < 20;
    CHECK(Holds(path, Read(path)));
  }
  CHECK(cut > 50);
  // Also where it is told to end earlier.
  const ScratchFolder folder;
  REQUIRE(Writer(LocalDisk(), folder / "some", elements)->Finish(7, true).ok());
  const auto some = ElementFile::Map(folder / "some");
  REQUIRE(some.ok());
  CHECK((*some)->size() == 7);
  CHECK_FALSE((*some)->whole());
  CHECK(Holds(folder / "some", Read(folder / "some")));
  // One that says nothing is no file.
  CHECK(Writer(LocalDisk(), folder / "none", elements)->Finish(0, false).code() ==
        absl::StatusCode::kResourceExhausted);
  CHECK_FALSE(std::filesystem::exists(folder / "none"));
}

TEST_CASE("a schema comes back from its text") {
  ElementSchema schema;
  schema.structure = "{\"a\":null,\"b c\":null,\"d\":null}";
  schema.signature = {{"a", {DType::kInt64, {}}},
                      {"b c", {DType::kString, {kUnknownSize, 3}}},
                      {"d", {DType::kBfloat16, {0, 1 << 30}}}};
  schema.compressed = true;
  const auto again = SchemaFromText(SchemaToText(schema));
  REQUIRE(again.ok());
  CHECK(again->signature == schema.signature);
  CHECK(again->structure == schema.structure);
  CHECK(again->compressed);
}

TEST_CASE("a schema of no features, or of more bytes than an element has, is refused") {
  for (const char* text : {
           "null\n",
           "null\nint8 4294967296 value\n",
           "null\nint8 9223372036854775807 value\n",
           "null\nint16 4294967296,4294967296 value\n",
           "null\nfloat32 -1,4294967295 value\n",
           "null\nstring 65536,65537 value\n",
           "[null,null]\nint8 9223372036854775800 0\nint8 9223372036854775800 1\n",
           "[null,null]\nint8 4294967295 0\nint8 - 1\n",
       }) {
    INFO(text);
    CHECK(SchemaFromText(text).status().code() == absl::StatusCode::kDataLoss);
  }
  CHECK(SchemaFromText("null\nint8 4294967295 value\n").ok());
}

}  // namespace
}  // namespace penstock
