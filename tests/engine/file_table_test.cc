#include "server/engine/file_table.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string ReadAll(RandomAccessFile& file) {
  std::string bytes(file.size(), 0);
  const auto out = absl::MakeSpan(reinterpret_cast<uint8_t*>(bytes.data()), bytes.size());
  REQUIRE(*file.ReadAt(0, out) == bytes.size());
  return bytes;
}

TEST_CASE("fault 23: what has come in the place of a file is neither mapped nor opened") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, "these bytes");
  const auto listed = LocalFileSystem().Open(path);
  REQUIRE(listed.ok());
  const Manifest manifest = {
      {.path = path, .size_bytes = (*listed)->size(), .identity = (*listed)->identity()}};
  FileTable before(LocalFileSystem(), manifest);
  const auto opened = before.Open(0);
  REQUIRE(opened.ok());
  const auto mapped = before.Map(0);
  REQUIRE(mapped != nullptr);
  SECTION("by its name") {
    Write(folder / "other", "other bytes");
    std::filesystem::last_write_time(folder / "other", std::filesystem::last_write_time(path));
    std::filesystem::rename(folder / "other", path);
    // What is open is read on.
    CHECK(ReadAll(**before.Open(0)) == "these bytes");
  }
  SECTION("by writing over it") {
    Write(path, "other bytes");
    std::filesystem::last_write_time(
        path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  }
  SECTION("by another size") { Write(path, "fewer"); }
  CHECK(before.Map(0) == nullptr);
  FileTable after(LocalFileSystem(), manifest);
  CHECK(after.Map(0) == nullptr);
  CHECK(after.Open(0).status().code() == absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace penstock
