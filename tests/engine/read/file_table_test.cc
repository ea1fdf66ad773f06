#include "server/engine/read/file_table.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/kept_descriptors.h"
#include "io/record/record_chunk.h"
#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/errands.h"
#include "server/engine/tasks/event.h"
#include "tests/support/catch.h"
#include "tests/support/frames.h"
#include "tests/support/memory_file.h"
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

// Where nothing may be opened any more.
class Closed final : public FileSystem {
 public:
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    return absl::PermissionDeniedError(path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return absl::PermissionDeniedError(pattern);
  }
};

TEST_CASE("fault 55: a file is mapped by the way that it is read by, and by no other") {
  const test::ScratchFolder folder;
  Write(folder / "data", "these bytes");
  const auto listed = LocalFileSystem().Open(folder / "data");
  REQUIRE(listed.ok());
  const Manifest manifest = {
      {.path = folder / "data", .size_bytes = (*listed)->size(), .version = (*listed)->version()}};
  CHECK(FileTable(LocalFileSystem(), manifest).Map(0) != nullptr);
  Closed closed;
  CHECK(FileTable(closed, manifest).Map(0) == nullptr);
}

// Its files can be opened from the second time on.
class OpensLater final : public FileSystem {
 public:
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    if (!std::exchange(was_asked_, true)) return absl::UnavailableError(path);
    return LocalFileSystem().Open(path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }

 private:
  bool was_asked_ = false;
};

TEST_CASE("an index that others have found is asked for, though its own load has ended before") {
  const test::ScratchFolder folder;
  Write(folder / "data", test::Frame("a record"));
  const auto listed = LocalFileSystem().Open(folder / "data");
  REQUIRE(listed.ok());
  const Manifest manifest = {{.path = folder / "data",
                              .size_bytes = (*listed)->size(),
                              .indexed = TfrecordFormat(),
                              .version = (*listed)->version()}};
  Event work;
  AwayTasks away(work, 1);
  Errands errands(away);
  errands.DoInPlace();
  OpensLater files;
  FileTable table(files, manifest);
  const auto ask = [&] { return table.AskIndex(0, OnDamage::kFail, &errands, 0); };
  REQUIRE_FALSE(ask().has_value());
  Errand* const load = errands.Pop();
  REQUIRE(load != nullptr);
  errands.Begin(load);
  const auto failed = ask();
  REQUIRE(failed.has_value());
  CHECK(failed->status().code() == absl::StatusCode::kUnavailable);
  REQUIRE(table.Index(0, OnDamage::kFail).ok());
  const auto found = ask();
  REQUIRE(found.has_value());
  CHECK(found->ok());
}

TEST_CASE("fault 23: what has come in the place of a file is neither mapped nor opened") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  Write(path, "these bytes");
  const auto listed = LocalFileSystem().Open(path);
  REQUIRE(listed.ok());
  const Manifest manifest = {
      {.path = path, .size_bytes = (*listed)->size(), .version = (*listed)->version()}};
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

TEST_CASE("Maps of files are kept as long as there is room for them, and give it back") {
  const test::ScratchFolder folder;
  constexpr uint64_t kBytes = 100'000;
  Manifest manifest;
  for (const char* name : {"a", "b", "c", "small"}) {
    Write(folder / name, std::string(name[0] == 's' ? kChunkBytes : kBytes, name[0]));
    const auto opened = LocalFileSystem().Open(folder / name);
    manifest.push_back(
        {.path = folder / name, .size_bytes = (*opened)->size(), .version = (*opened)->version()});
  }
  const auto maps = std::make_shared<SharedMaps>(2 * kBytes);
  const auto map_of = [](FileTable& table, uint32_t file) -> const MappedFile* {
    table.KeepMap(file, **table.Open(file));
    NearMap* const map = table.MapOf(file);
    return map == nullptr ? nullptr : &map->file();
  };
  const auto is_in_use = [&](int files, uint64_t bytes) {
    return maps->InUse().files == files && maps->InUse().bytes == bytes;
  };
  const auto table_with_maps = [&] {
    auto table = std::make_unique<FileTable>(LocalFileSystem(), manifest);
    table->KeepMaps(maps);
    return table;
  };
  {
    FileTable table(LocalFileSystem(), manifest);
    CHECK(map_of(table, 0) == nullptr);  // it keeps none
  }
  auto table = table_with_maps();
  CHECK(map_of(*table, 3) == nullptr);
  CHECK(table->MapOf(0) == nullptr);
  const MappedFile* const first = map_of(*table, 0);
  REQUIRE(first != nullptr);
  CHECK(first->bytes()[kBytes - 1] == 'a');
  CHECK(map_of(*table, 2) != nullptr);
  CHECK(map_of(*table, 1) == nullptr);
  CHECK(map_of(*table, 0) == first);
  CHECK(&table->MapOf(0)->file() == first);
  CHECK(is_in_use(2, 2 * kBytes));
  // One map serves all tables, and outlives the first of them.
  auto another = table_with_maps();
  CHECK(map_of(*another, 1) == nullptr);
  CHECK(map_of(*another, 0) == first);
  CHECK(is_in_use(2, 2 * kBytes));
  table.reset();
  CHECK(is_in_use(1, kBytes));
  CHECK(first->bytes()[0] == 'a');
  // What found no room is looked at again.
  CHECK(map_of(*another, 1) != nullptr);
  CHECK(is_in_use(2, 2 * kBytes));
  another.reset();
  CHECK(is_in_use(0, 0));
}

TEST_CASE("A file that came in the place of another has a map of its own") {
  const test::ScratchFolder folder;
  Write(folder / "data", "these bytes");
  SharedMaps maps(UINT64_MAX);
  const auto before = LocalFileSystem().Open(folder / "data");
  const SharedMaps::Map map = *maps.Get(**before);
  Write(folder / "other", "other bytes");
  std::filesystem::rename(folder / "other", folder / "data");
  const SharedMaps::Map another = *maps.Get(**LocalFileSystem().Open(folder / "data"));
  CHECK(map->bytes()[0] == 't');
  CHECK(another->bytes()[0] == 'o');
  CHECK(*maps.Get(**before) == map);
}

TEST_CASE("A map that has lost pages is not given to others") {
  const test::ScratchFolder folder;
  Write(folder / "data", std::string(10'000, 'x'));
  SharedMaps maps(30'000);
  const auto opened = *LocalFileSystem().Open(folder / "data");
  const SharedMaps::Map map = *maps.Get(*opened);
  REQUIRE(truncate((folder / "data").c_str(), 100) == 0);
  std::vector<uint8_t> copy(10'000);
  CHECK(map->Copy(0, absl::MakeSpan(copy)).code() == absl::StatusCode::kDataLoss);
  // As it may look when a disk gave an error once.
  REQUIRE(truncate((folder / "data").c_str(), 10'000) == 0);
  const SharedMaps::Map another = *maps.Get(*opened);
  CHECK(another != map);
  CHECK_FALSE(another->torn());
  CHECK(*maps.Get(*opened) == another);
  CHECK(maps.InUse().files == 2);
}

TEST_CASE("Threads that ask for a map of one file at a time have the same") {
  const test::ScratchFolder folder;
  constexpr uint64_t kBytes = 100'000;
  Write(folder / "data", std::string(kBytes, 'x'));
  const auto opened = *LocalFileSystem().Open(folder / "data");
  for (int round = 0; round < 50; ++round) {
    SharedMaps maps(UINT64_MAX);
    std::vector<SharedMaps::Map> had(4);
    std::vector<std::thread> threads;
    for (SharedMaps::Map& one : had)
      threads.emplace_back([&maps, &one, &opened] { one = *maps.Get(*opened); });
    for (std::thread& thread : threads) thread.join();
    for (const SharedMaps::Map& one : had) CHECK(one == had[0]);
    CHECK(maps.InUse().files == 1);
    CHECK(maps.InUse().bytes == kBytes);
  }
}

TEST_CASE("A file that is read in another way than from its descriptor has no map") {
  SharedMaps maps(UINT64_MAX);
  const test::MemoryFile memory("some bytes");
  CHECK_FALSE(maps.Get(memory).ok());
  CHECK_FALSE(absl::IsResourceExhausted(maps.Get(memory).status()));
}

// Counts the handles that somebody has.
class CountedFiles final : public FileSystem {
 public:
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    auto file = LocalFileSystem().Open(path);
    if (!file.ok()) return file.status();
    std::erase_if(open_, [](const auto& one) { return one.expired(); });
    open_.push_back(*file);
    return *std::move(file);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }
  size_t num_open() const {
    return std::count_if(open_.begin(), open_.end(),
                         [](const auto& one) { return !one.expired(); });
  }

 private:
  std::vector<std::weak_ptr<RandomAccessFile>> open_;
};

Manifest ManyFiles(const test::ScratchFolder& folder, int count) {
  Manifest manifest;
  for (int i = 0; i < count; ++i) Write(folder / std::to_string(i), std::to_string(i));
  for (int i = 0; i < count; ++i) {
    const ListedFile file = LocalFileSystem().List(folder / std::to_string(i))->at(0);
    manifest.push_back({.path = file.path, .size_bytes = file.size_bytes, .version = file.version});
  }
  return manifest;
}

TEST_CASE("Of many files those that were opened last are kept open, and all can be read") {
  const test::ScratchFolder folder;
  const int count = static_cast<int>(FileTable::kMaxOpenFiles) + 20;
  const Manifest manifest = ManyFiles(folder, count);
  CountedFiles files;
  const size_t most = std::min(FileTable::kMaxOpenFiles, KeptDescriptorsMax());
  {
    FileTable table(files, manifest);
    for (int i = 0; i < count; ++i) {
      const auto file = table.Open(i);
      REQUIRE(file.ok());
      CHECK(ReadAll(**file) == std::to_string(i));
    }
    CHECK(files.num_open() == most);
    // What is kept is not opened again, and what is not is.
    const auto last = table.Open(count - 1);
    CHECK(*table.Open(count - 1) == *last);
    const auto first = table.Open(0);
    CHECK(ReadAll(**first) == "0");
    CHECK(files.num_open() == most);
  }
  CHECK(files.num_open() == 0);
}

TEST_CASE("Fault 60: all tables together keep as many files open as the process may") {
  const test::ScratchFolder folder;
  const Manifest manifest = ManyFiles(folder, 200);
  CountedFiles files;
  std::vector<std::unique_ptr<FileTable>> tables;
  const size_t tables_to_fill = KeptDescriptorsMax() / manifest.size() + 2;
  if (tables_to_fill > 40) return;  // where the limit is high nothing is short
  for (size_t i = 0; i < tables_to_fill; ++i) {
    tables.push_back(std::make_unique<FileTable>(files, manifest));
    for (uint32_t file = 0; file < manifest.size(); ++file) REQUIRE(tables.back()->Open(file).ok());
  }
  CHECK(files.num_open() == KeptDescriptorsMax());
  tables.clear();
  CHECK(files.num_open() == 0);
  CHECK(KeepDescriptor());
  LetGoOfDescriptor();
}

TEST_CASE("A record that is not where an index says is told of as a change, and damage as damage") {
  const test::ScratchFolder folder;
  const std::string path = folder / "data";
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += test::Frame(std::string(100, 'x'));
  const size_t frame = bytes.size() / 200;
  Write(path, bytes);
  const auto manifest_of = [&] {
    const ListedFile file = LocalFileSystem().List(path)->at(0);
    return Manifest{{.path = path,
                     .size_bytes = file.size_bytes,
                     .indexed = TfrecordFormat(),
                     .version = file.version}};
  };
  const absl::Status damage = absl::DataLossError("data checksum mismatch");
  const Manifest manifest = manifest_of();
  FileTable table(LocalFileSystem(), manifest);
  REQUIRE(table.Index(0, OnDamage::kFail).ok());
  const auto told = [&](uint64_t record) {
    return std::string(table.WithRecordAddress(damage, 0, record * frame).message());
  };
  const auto change = [&](size_t at, const std::string& to) {
    const auto time = std::filesystem::last_write_time(path);
    std::fstream(path, std::ios::in | std::ios::out | std::ios::binary).seekp(at) << to;
    std::filesystem::last_write_time(path, time);
  };
  // A byte of a record's data: its header stands.
  change(30 * frame + 50, "y");
  CHECK(told(30) == "data checksum mismatch (" + path + ", record 30, offset 3480)");
  // Two records become one: the second is no more where it was.
  change(50 * frame, test::Frame(std::string(200 + 16, 'y')));
  CHECK_THAT(told(51), Catch::StartsWith("the file changed since its index was made") &&
                           Catch::Contains("penstock index " + path + " --format tfrecord`"));
  CHECK_THAT(told(50), Catch::StartsWith("the file changed since its index was made"));
  CHECK(told(30) == "data checksum mismatch (" + path + ", record 30, offset 3480)");
}

}  // namespace
}  // namespace penstock
