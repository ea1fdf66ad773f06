#include "server/engine/mapped_records.h"

#include <fstream>
#include <memory>
#include <string>

#include "server/io/mapped_file.h"
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
      const uint8_t* const copy = CopyMapped(record, arena);
      const std::string copied(reinterpret_cast<const char*>(copy), length);
      CHECK(DataHolds(copy, length) == (position == 11));
      CHECK((copied == value) == (position == 11 || position >= 12 + length));
    }
  }
}

}  // namespace
}  // namespace penstock
