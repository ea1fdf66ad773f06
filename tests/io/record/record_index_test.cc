#include "io/record/record_index.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/disk.h"
#include "base/local_file.h"
#include "base/rooted_file_system.h"
#include "io/file/crc32c.h"
#include "io/record/index_file.h"
#include "io/record/record_chunk.h"
#include "io/record/tfrecord_access.h"
#include "io/record/tfrecord_frame.h"
#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Found;
using test::ScratchFolder;

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

std::string Read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::shared_ptr<RandomAccessFile> Open(const std::string& path) {
  auto file = LocalFileSystem().Open(path);
  REQUIRE(file.ok());
  return *file;
}

std::string Records(char letter = 'x') {
  std::string bytes;
  for (const size_t length : {5, 0, 300, 70000, 40, 9000, 300000, 300000, 300000, 8193, 1, 12})
    bytes += test::Frame(std::string(length, letter));
  return bytes;
}

// Where an index file has what the tests change, as io/record/index_file.h draws it: of records
// that fill a line, and lie far apart.
constexpr size_t kLine = 128;
constexpr size_t kOffsets = kLine + 64;

// The index says what reading the file finds.
void CheckIndex(const RecordIndex& index, const Found& found) {
  REQUIRE(index.size() == found.records.size());
  for (uint64_t i = 0; i < index.size(); ++i) {
    CHECK(index.offset(i) == found.offsets[i]);
    CHECK(index.length(i) == found.records[i].size());
  }
  CHECK((index.damage() == found.damage));
}

auto LoadOrBuild(const std::shared_ptr<RandomAccessFile>& file, const IndexOptions& options,
                 const std::string& own_folder = "", IndexReport* report = nullptr) {
  FolderIndexStore store(LocalFileSystem(), own_folder);
  return LoadOrBuildIndex(file, TfrecordAccess(), store, options, report);
}

// Loads or builds, and checks against the file.
IndexReport Check(const std::string& path, const IndexOptions& options,
                  const std::string& own_folder = "") {
  auto file = Open(path);
  IndexReport report;
  const auto index = LoadOrBuild(file, options, own_folder, &report);
  REQUIRE(index.ok());
  CheckIndex(**index, test::ReadChunks(*file, options.on_damage));
  return report;
}

TEST_CASE("An index is built once, beside the data, and says where each record is") {
  const ScratchFolder folder;
  for (const bool verify : {false, true}) {
    const std::string path = folder / absl::StrCat("data", verify);
    Write(path, Records());
    const IndexReport first = Check(path, {.verify = verify});
    CHECK(first.built);
    CHECK(first.path == IndexPathBeside(path));
    CHECK(first.rejected.empty());
    const IndexReport second = Check(path, {.verify = verify});
    CHECK(!second.built);
    CHECK(second.path == first.path);
    CHECK(second.rejected.empty());
    // Whoever may read the data may read its index.
    CHECK((std::filesystem::status(first.path).permissions() & std::filesystem::perms::all) ==
          static_cast<std::filesystem::perms>(0644));
    // Head, a line and the checksum; the records lie far apart. Nothing else is left in the folder.
    CHECK(std::filesystem::file_size(first.path) == kOffsets + 8 * 12 + 4);
  }
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    files += entry.exists() ? 1 : 0;
  CHECK(files == 4);
}

TEST_CASE("fault 7: an empty file has an index without records") {
  const ScratchFolder folder;
  Write(folder / "data", "");
  CHECK(Check(folder / "data", {}).built);
  CHECK(!Check(folder / "data", {}).built);
}

TEST_CASE("A verifying index is not satisfied by one that is not, but the reverse") {
  const ScratchFolder folder;
  Write(folder / "data", Records());
  CHECK(Check(folder / "data", {}).built);
  const IndexReport report = Check(folder / "data", {.verify = true});
  CHECK(report.built);
  CHECK_THAT(report.rejected, Catch::StartsWith("it was built without verifying the data"));
  CHECK(!Check(folder / "data", {}).built);
  // Whoever leaves out damage has to have looked for it.
  Write(folder / "other", Records());
  CHECK(Check(folder / "other", {}).built);
  CHECK(Check(folder / "other", {.on_damage = OnDamage::kSkipRecord}).built);
}

TEST_CASE("Damage is an error with its address, or left out and listed") {
  const ScratchFolder folder;
  std::string bytes = Records();
  const std::string path = folder / "data";
  const size_t third = test::Frame(std::string(5, 'x')).size() + 16;
  SECTION("a length") {
    bytes[third + 2] ^= 1;
    Write(path, bytes);
    const auto index = LoadOrBuild(Open(path), {});
    CHECK(index.status().code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(index.status().message()),
               Catch::EndsWith(absl::StrCat(" (", path, ", record 2, offset ", third, ")")));
  }
  SECTION("data") {
    bytes[third + 50] ^= 1;
    Write(path, bytes);
    NoIndexStore nowhere;
    CHECK(LoadOrBuildIndex(Open(path), TfrecordAccess(), nowhere, {}).ok());
    const auto index = LoadOrBuild(Open(path), {.verify = true});
    CHECK_THAT(std::string(index.status().message()), Catch::StartsWith("data checksum mismatch"));
  }
  SECTION("a cut tail") {
    bytes.resize(bytes.size() - 1);
    Write(path, bytes);
    const auto index = LoadOrBuild(Open(path), {});
    CHECK_THAT(std::string(index.status().message()), Catch::StartsWith("record is cut"));
  }
  SECTION("a tail cut in its header") {
    bytes += "12345";
    Write(path, bytes);
    const auto index = LoadOrBuild(Open(path), {});
    CHECK_THAT(std::string(index.status().message()),
               Catch::StartsWith("header is cut: expected 12 bytes, the file has 5 more"));
  }
  const IndexOptions skip = {.on_damage = OnDamage::kSkipRecord};
  CHECK(Check(path, skip).built);
  CHECK(!Check(path, skip).built);
  // Without the policy, an index that leaves something out is not taken.
  CHECK(!LoadOrBuild(Open(path), {.verify = true}).ok());
}

TEST_CASE("faults 31 and 68: an index with any bit flipped, cut anywhere or foreign is rebuilt") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  const std::string index_path = IndexPathBeside(path);
  std::string bytes = Records();
  bytes[700] ^= 1;
  Write(path, bytes);
  const IndexOptions skip = {.on_damage = OnDamage::kSkipRecord};
  CHECK(Check(path, skip).built);
  const std::string good = Read(index_path);
  for (size_t at = 0; at < good.size(); ++at) {
    std::string bad = good;
    bad[at] ^= 1 << at % 8;
    Write(index_path, bad);
    const IndexReport report = Check(path, skip);
    INFO("byte " << at << ": " << report.rejected);
    CHECK(report.built);
    CHECK(!report.rejected.empty());
    // But for the number of its own file, and the checksum of that.
    CHECK((Read(index_path).replace(80, 8, 8, '\0').substr(0, good.size() - 4) ==
           std::string(good).replace(80, 8, 8, '\0').substr(0, good.size() - 4)));
  }
  for (size_t cut = 0; cut < good.size(); cut += 3) {
    Write(index_path, good.substr(0, cut));
    CHECK(Check(path, skip).built);
  }
  for (const std::string& foreign : {std::string("hello"), std::string(good.size(), '\0'),
                                     good + "x", std::string(9000000, 'x')}) {
    Write(index_path, foreign);
    const IndexReport report = Check(path, skip);
    CHECK(report.built);
    // No memory by the size of what lies there.
    if (foreign.size() > LargestIndex(TfrecordAccess().shape(), bytes.size()))
      CHECK_THAT(report.rejected, Catch::StartsWith("it is longer than an index of the data"));
  }
}

// Gives an index whose bytes were changed on purpose the checksum that it should have.
std::string Sealed(std::string index) {
  const uint32_t crc = Crc32c(reinterpret_cast<const uint8_t*>(index.data()), index.size() - 4);
  index.replace(index.size() - 4, 4, reinterpret_cast<const char*>(&crc), 4);
  return index;
}

TEST_CASE("An index whose numbers are impossible is rebuilt, its checksum notwithstanding") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  const std::string index_path = IndexPathBeside(path);
  Write(path, Records());
  CHECK(Check(path, {}).built);
  const std::string good = Read(index_path);
  CHECK((Sealed(good) == good));
  for (const size_t at :
       {size_t{8}, size_t{16}, size_t{40}, size_t{44}, size_t{48}, size_t{56}, size_t{88},
        size_t{96}, size_t{104}, kLine, kOffsets, kOffsets + 8 * 11}) {
    for (const uint64_t value : {~uint64_t{0}, uint64_t{1} << 61, uint64_t{1} << 40, uint64_t{7}}) {
      std::string bad = good;
      bad.replace(at, 8, reinterpret_cast<const char*>(&value), 8);
      Write(index_path, Sealed(bad));
      INFO("at " << at << " value " << value);
      CHECK(Check(path, {}).built);
    }
  }
}

TEST_CASE("fault 6: an index that names a record above the limit is refused") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, Records());
  CHECK(Check(path, {}).built);
  // Of one record, from the data's beginning to its end.
  std::string bytes = Read(IndexPathBeside(path)).substr(0, kLine);
  bytes.append(64 + 4, 0);
  const auto put = [&](size_t at, uint64_t value) {
    bytes.replace(at, 8, reinterpret_cast<const char*>(&value), 8);
  };
  put(48, 1);
  put(56, 0);
  put(104, 0);
  for (const uint64_t length : {kMaxRecordBytes, kMaxRecordBytes + 1, uint64_t{1} << 33}) {
    put(16, length + kFrameBytes);
    put(96, length + kFrameBytes);
    const std::string sealed = Sealed(bytes);
    IndexStamp stamp;
    stamp.data_bytes = length + kFrameBytes;
    std::memcpy(&stamp.first_crc, &sealed[40], 4);
    std::memcpy(&stamp.last_crc, &sealed[44], 4);
    MemoryBlock block = AllocateMemoryBlock(sealed.size());
    std::memcpy(block.get(), sealed.data(), sealed.size());
    bool copied = false;
    const auto index =
        ParseIndex(std::move(block), sealed.size(), TfrecordAccess(), stamp, 0, &copied);
    CAPTURE(length);
    CHECK(index.ok() == (length == kMaxRecordBytes));
    if (!index.ok()) CHECK(index.status().message() == "it has a record above the limit");
  }
}

TEST_CASE("An index whose damages are impossible is rebuilt, its checksum notwithstanding") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  const std::string index_path = IndexPathBeside(path);
  const IndexOptions skip = {.on_damage = OnDamage::kSkipRecord};
  std::string bytes = Records();
  const uint64_t third = test::Frame(std::string(5, 'x')).size() + 16;
  bytes[third + 50] ^= 1;
  bytes[bytes.size() / 2] ^= 1;
  Write(path, bytes);
  CHECK(Check(path, skip).built);
  const std::string good = Read(index_path);
  constexpr size_t kDamages = kOffsets + 8 * 10;
  REQUIRE(good.size() == kDamages + 2 * 24 + 4);
  const struct {
    size_t at;
    std::vector<uint64_t> numbers;
  } cases[] = {
      {kDamages + 8, {0}},                     // a damage of no bytes
      {kDamages + 24, {third, 16}},            // two that begin at one place
      {kDamages + 24, {0, 16}},                // out of order
      {kOffsets + 8, {third - 8}},             // a record with no room in front of a damage
      {kOffsets + 8 * 9, {bytes.size() - 8}},  // or in front of the end
  };
  for (const auto& c : cases) {
    std::string bad = good;
    const size_t size = 8 * c.numbers.size();
    bad.replace(c.at, size, reinterpret_cast<const char*>(c.numbers.data()), size);
    Write(index_path, Sealed(bad));
    INFO("at " << c.at << " value " << c.numbers[0]);
    CHECK(Check(path, skip).built);
  }
}

TEST_CASE("Data that changed has its index rebuilt") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, Records());
  CHECK(Check(path, {}).built);
  SECTION("it grew") {
    Write(path, Records() + test::Frame("more"));
    CHECK_THAT(Check(path, {}).rejected, Catch::StartsWith("it belongs to other data"));
  }
  SECTION("it shrank") {
    Write(path, test::Frame("one"));
    CHECK(Check(path, {}).built);
  }
  SECTION("other bytes of the same size at its end") {
    std::string bytes = Records();
    bytes.replace(bytes.size() - 28, 28, test::Frame(std::string(12, 'y')));
    Write(path, bytes);
    CHECK_THAT(Check(path, {}).rejected, Catch::StartsWith("it belongs to other data"));
  }
  SECTION("other records in its middle: the lengths tell") {
    std::string bytes;
    for (const size_t length : {5, 0, 300, 70000, 41, 8999, 300000, 300000, 300000, 8193, 1, 12})
      bytes += test::Frame(std::string(length, 'x'));
    REQUIRE(bytes.size() == Records().size());
    Write(path + ".new", bytes);
    std::filesystem::last_write_time(path + ".new", std::filesystem::last_write_time(path));
    std::filesystem::rename(path + ".new", path);
    CHECK_THAT(Check(path, {}).rejected, Catch::StartsWith("the data changed since it was made"));
  }
}

TEST_CASE("Data that is newer than its index has it rebuilt, wherever the change lies") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += test::Frame(std::string(100, 'x'));
  Write(path, bytes);
  CHECK(Check(path, {}).built);
  // Two records become one, between the headers that are looked at.
  const size_t frame = bytes.size() / 200;
  bytes.replace(50 * frame, 2 * frame, test::Frame(std::string(200 + 16, 'y')));
  const auto later =
      std::filesystem::last_write_time(IndexPathBeside(path)) + std::chrono::seconds(1);
  SECTION("it was written to") {
    Write(path, bytes);
    std::filesystem::last_write_time(path, later);
  }
  SECTION("it was replaced") {
    Write(path + ".new", bytes);
    std::filesystem::last_write_time(path + ".new", later);
    std::filesystem::rename(path + ".new", path);
  }
  CHECK_THAT(Check(path, {}).rejected, Catch::StartsWith("the data changed since it was made"));
}

TEST_CASE("An index that was copied and is older than the data that came with it is rebuilt") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, Records());
  CHECK(Check(path, {}).built);
  std::filesystem::copy(path, folder / "copy");
  std::filesystem::copy(IndexPathBeside(path), IndexPathBeside(folder / "copy"));
  std::filesystem::last_write_time(
      folder / "copy",
      std::filesystem::last_write_time(IndexPathBeside(folder / "copy")) + std::chrono::seconds(1));
  CHECK_THAT(Check(folder / "copy", {}).rejected, Catch::StartsWith("it is older than the data"));
}

TEST_CASE(
    "Data that was changed in its middle, within its size and under its old time, has its index "
    "rebuilt") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += test::Frame(std::string(100, 'x'));
  Write(path, bytes);
  CHECK(Check(path, {.verify = true}).built);
  CHECK(!Check(path, {.verify = true}).built);
  const auto time = std::filesystem::last_write_time(path);
  // Two records become one, between the headers that are looked at.
  const size_t frame = bytes.size() / 200;
  bytes.replace(50 * frame, 2 * frame, test::Frame(std::string(200 + 16, 'y')));
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary) << bytes;
  std::filesystem::last_write_time(path, time);
  CHECK_THAT(Check(path, {}).rejected, Catch::StartsWith("the data changed since it was made"));
  CHECK(!Check(path, {}).built);
}

// An index of 12 records far apart and without damage, as older releases wrote it.
std::string OfVersion(char version, const std::string& index) {
  std::string old = index.substr(0, version == 1 ? 64 : 88);
  old[8] = version;
  return Sealed(old + index.substr(kOffsets, 8 * 12) + "crc.");
}

TEST_CASE("An index of version 2 is read, and stays what it is") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, Records());
  CHECK(Check(path, {.verify = true}).built);
  std::string old = OfVersion(2, Read(IndexPathBeside(path)));
  // Over the file of the new one, whose number it has.
  std::fstream(IndexPathBeside(path), std::ios::in | std::ios::out | std::ios::binary) << old;
  std::filesystem::resize_file(IndexPathBeside(path), old.size());
  CHECK(!Check(path, {.verify = true}).built);
  CHECK(Read(IndexPathBeside(path)) == old);
}

TEST_CASE(
    "What older releases wrote beside the data, without a dot and without a holder, is read as a "
    "copy") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, Records());
  CHECK(Check(path, {.verify = true}).built);
  Write(IndexPathOfOldBeside(path), OfVersion(1, Read(IndexPathBeside(path))));
  std::filesystem::remove(IndexPathBeside(path));
  const IndexReport report = Check(path, {});
  CHECK(!report.built);
  CHECK(report.path == IndexPathOfOldBeside(path));
  CHECK(Check(path, {.verify = true}).path == IndexPathBeside(path));
}

TEST_CASE(
    "Nothing is written beside data whose file system has no disk, nor where its disk may not "
    "write") {
  const ScratchFolder folder;
  const ScratchFolder own;
  Write(folder / "data", Records());
  const auto limited = MakeLimitedDisk({own / "elsewhere"}, UINT64_MAX);
  const auto rooted = MakeRootedFileSystem({folder.path()});
  const auto limited_files = MakeLocalFileSystem(*limited);
  REQUIRE(rooted.ok());
  for (FileSystem* files : {rooted->get(), limited_files.get()}) {
    auto file = files->Open(folder / "data");
    REQUIRE(file.ok());
    for (const std::string& own_folder : {std::string(), own / "index"}) {
      FolderIndexStore store(*files, own_folder);
      IndexReport report;
      REQUIRE(LoadOrBuildIndex(*file, TfrecordAccess(), store, {}, &report).ok());
      CHECK(report.built == (own_folder.empty() || files == rooted->get()));
      CHECK(report.path == (own_folder.empty() ? "" : IndexPathIn(own_folder, folder / "data")));
    }
  }
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE(
    "Data in the place of other data of the same age and size is known by its records' lengths") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += test::Frame(std::string(100, 'x'));
  Write(path, bytes);
  CHECK(Check(path, {}).built);
  // The 54th is one of the 16 that are looked at, the one behind it is not: where it begins a
  // record begins, a longer one.
  const size_t frame = bytes.size() / 200;
  bytes.replace(53 * frame, 2 * frame, test::Frame(std::string(200 + 16, 'y')));
  Write(path + ".new", bytes);
  std::filesystem::last_write_time(path + ".new", std::filesystem::last_write_time(path));
  std::filesystem::rename(path + ".new", path);
  // As if the index had come with it.
  const std::string index_path = IndexPathBeside(path);
  std::filesystem::copy(index_path, index_path + ".new");
  std::filesystem::rename(index_path + ".new", index_path);
  CHECK_THAT(Check(path, {}).rejected, Catch::Contains("records are not where it says"));
}

TEST_CASE("An index that was copied with its data is used, but not for having verified it") {
  const ScratchFolder folder;
  Write(folder / "data", Records());
  CHECK(Check(folder / "data", {.verify = true}).built);
  std::filesystem::copy(folder / "data", folder / "copy");
  std::filesystem::copy(IndexPathBeside(folder / "data"), IndexPathBeside(folder / "copy"));
  CHECK(!Check(folder / "copy", {}).built);
  CHECK(Check(folder / "copy", {.verify = true}).built);
}

TEST_CASE("Where the data's folder cannot be written the index is in the cache directory") {
  const ScratchFolder folder;
  const ScratchFolder cache;
  // A folder in the index's place refuses it to root too, whom permissions do not stop.
  Write(folder / "data", Records());
  std::filesystem::create_directory(IndexPathBeside(folder / "data"));
  const std::string own = cache / "a/b";
  const IndexReport first = Check(folder / "data", {}, own);
  CHECK(first.built);
  CHECK(first.path == IndexPathIn(own, folder / "data"));
  CHECK(!Check(folder / "data", {}, own).built);
  // Nowhere: it is built each time and says why.
  const IndexReport nowhere = Check(folder / "data", {});
  CHECK(nowhere.built);
  CHECK(nowhere.path.empty());
  CHECK_THAT(nowhere.unwritten, Catch::Contains("cannot name"));
  // What could not be given its name is not left behind.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
  // Another file has another name there, however its path is written.
  CHECK(IndexPathIn("c", folder / "data") == IndexPathIn("c", folder / "x/../data"));
  CHECK(IndexPathIn("c", folder / "data") != IndexPathIn("c", folder / "data2"));
}

TEST_CASE("fault 32: two builders at once are harmless") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, Records());
  auto file = Open(path);
  std::vector<std::thread> builders;
  std::vector<uint64_t> sizes(8);
  for (uint64_t& size : sizes) {
    builders.emplace_back([&size, &file] {
      for (int i = 0; i < 20; ++i) {
        const auto index = LoadOrBuild(file, {});
        size = index.ok() ? (*index)->size() : 0;
        unlink(IndexPathBeside(file->path()).c_str());
      }
    });
  }
  for (std::thread& builder : builders) builder.join();
  CHECK((sizes == std::vector<uint64_t>(8, 12)));
  Check(path, {});
  CHECK(!Check(path, {}).built);
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 2);
}

TEST_CASE("Long records are indexed by their headers: little of them is read") {
  std::string bytes;
  for (int i = 0; i < 20; ++i) bytes += test::Frame(std::string(1 << 20, 'x'));
  auto file = test::InMemory(bytes);
  NoIndexStore nowhere;
  REQUIRE(LoadOrBuildIndex(file, TfrecordAccess(), nowhere, {}).ok());
  CHECK(file->bytes_read() < 500000);
}

TEST_CASE("Progress is told, up to the file's size") {
  std::string bytes;
  for (int i = 0; i < 200000; ++i) bytes += test::Frame(std::string(100, 'x'));
  for (const bool verify : {false, true}) {
    std::vector<uint64_t> told;
    const IndexOptions options = {.verify = verify,
                                  .progress = [&told](uint64_t done) { told.push_back(done); }};
    NoIndexStore nowhere;
    REQUIRE(LoadOrBuildIndex(test::InMemory(bytes), TfrecordAccess(), nowhere, options).ok());
    CHECK(told.size() > 4);
    CHECK(std::is_sorted(told.begin(), told.end()));
    CHECK(told.back() == bytes.size());
  }
}

TEST_CASE("A glob of data files leaves their indices out") {
  const ScratchFolder folder;
  Write(folder / "data", Records());
  Check(folder / "data", {});
  const auto names = [&](const std::string& pattern) {
    std::vector<std::string> found;
    const auto listed = LocalFileSystem().List(folder / pattern);
    REQUIRE(listed.ok());
    for (const ListedFile& file : *listed)
      found.push_back(file.path.substr(folder.path().size() + 1));
    return found;
  };
  CHECK(names("*") == std::vector<std::string>{"data"});
  CHECK(names(".*.penstock-index") == std::vector<std::string>{".data.penstock-index"});
  Write(IndexPathOfOldBeside(folder / "data"), "old");
  CHECK(names("*") == std::vector<std::string>{"data"});
  CHECK(names("*.penstock-index") == std::vector<std::string>{"data.penstock-index"});
}

}  // namespace
}  // namespace penstock
