// The cache folder: what is kept, what makes room, and that nothing comes out of it that is not
// whole, whenever its writer was killed.
#include "io/remote/disk_cache.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/remote/remote_reads.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

using test::Bytes;
using test::ScratchFolder;

constexpr uint64_t kPage = DiskCache::kPageBytes;

absl::Span<const uint8_t> PartOf(const std::string& object, uint64_t offset, uint64_t bytes) {
  return {reinterpret_cast<const uint8_t*>(object.data()) + offset, bytes};
}

// What the cache gives for these bytes; "": they are not there.
std::string Read(DiskCache& cache, const std::string& name, uint64_t size, uint64_t offset,
                 uint64_t bytes) {
  std::string out(bytes, '\0');
  const bool is_there =
      cache.Read(name, size, offset, {reinterpret_cast<uint8_t*>(out.data()), out.size()});
  return is_there ? out : "";
}

std::unique_ptr<DiskCache> Open(const std::string& folder, uint64_t bytes_max,
                                DiskCache::Clock clock = {}) {
  absl::StatusOr<std::unique_ptr<DiskCache>> cache =
      DiskCache::Open(folder, bytes_max, std::move(clock));
  INFO(cache.status());
  REQUIRE(cache.ok());
  return *std::move(cache);
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path().string());
  return files;
}

TEST_CASE("pages come back as they were kept, also when the folder is opened anew") {
  const ScratchFolder folder;
  const std::string object = Bytes(20 * kPage + 17);
  {
    const auto cache = Open(folder / "cache", 0);
    CHECK(Read(*cache, "a", object.size(), 0, kPage).empty());
    cache->Write("a", object.size(), 2 * kPage, PartOf(object, 2 * kPage, 3 * kPage));
    cache->Write("a", object.size(), 20 * kPage, PartOf(object, 20 * kPage, 17));
  }
  const auto cache = Open(folder / "cache", 0);
  CHECK(cache->bytes() > 0);
  CHECK(Read(*cache, "a", object.size(), 2 * kPage, 3 * kPage) ==
        object.substr(2 * kPage, 3 * kPage));
  CHECK(Read(*cache, "a", object.size(), 3 * kPage, kPage) == object.substr(3 * kPage, kPage));
  CHECK(Read(*cache, "a", object.size(), 20 * kPage, 17) == object.substr(20 * kPage));
  // Some of these are missing.
  CHECK(Read(*cache, "a", object.size(), kPage, 2 * kPage).empty());
  CHECK(Read(*cache, "a", object.size(), 4 * kPage, 2 * kPage).empty());
  // Another state of the object, and another object.
  CHECK(Read(*cache, "a", object.size() + 1, 2 * kPage, kPage).empty());
  CHECK(Read(*cache, "b", object.size(), 2 * kPage, kPage).empty());
}

TEST_CASE("what a disk has lost or changed is not given out, and is kept anew") {
  const std::string object = Bytes(8 * kPage);
  const auto damage = [](const std::string& path, auto change) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    change(file);
  };
  const std::function<void(std::fstream&)> kChanges[] = {
      // A byte of a page; a sum; the head; the name.
      [](std::fstream& file) { file.seekp(-100, std::ios::end).put('x'); },
      [](std::fstream& file) { file.seekp(kPage + 7 * sizeof(uint32_t)).write("abcd", 4); },
      [](std::fstream& file) { file.seekp(9).put('x'); },
      [](std::fstream& file) { file.seekp(32).put('x'); },
  };
  for (const auto& change : kChanges) {
    const ScratchFolder folder;
    const auto cache = Open(folder.path(), 0);
    cache->Write("a", object.size(), 0, PartOf(object, 0, object.size()));
    CHECK(Read(*cache, "a", object.size(), 0, object.size()) == object);
    damage(FilesIn(folder.path()).at(0), change);
    CHECK(Read(*cache, "a", object.size(), 0, object.size()).empty());
    cache->Write("a", object.size(), 0, PartOf(object, 0, object.size()));
    CHECK(Read(*cache, "a", object.size(), 0, object.size()) == object);
  }
  const ScratchFolder folder;
  const auto cache = Open(folder.path(), 0);
  cache->Write("a", object.size(), 0, PartOf(object, 0, object.size()));
  std::filesystem::resize_file(FilesIn(folder.path()).at(0), 4 * kPage);
  CHECK(Read(*cache, "a", object.size(), 0, object.size()).empty());
}

TEST_CASE("what is kept stays, and what nobody has read for an hour makes room") {
  const ScratchFolder folder;
  int64_t now_s = 2'000'000'000;
  const std::string object = Bytes(16 << 20);
  const auto cache = Open(folder.path(), 40 << 20, [&now_s] { return now_s; });
  const auto keep = [&](const std::string& name) {
    for (uint64_t at = 0; at < object.size(); at += 1 << 20)
      cache->Write(name, object.size(), at, PartOf(object, at, 1 << 20));
  };
  const auto parts_of = [&](const std::string& name) {
    int parts = 0;
    for (uint64_t at = 0; at < object.size(); at += 1 << 20)
      parts += !Read(*cache, name, object.size(), at, 1 << 20).empty();
    return parts;
  };
  keep("a");
  keep("b");
  keep("c");
  CHECK(parts_of("a") == 16);
  CHECK(parts_of("b") == 16);
  // As much as there is room for.
  CHECK(parts_of("c") < 8);
  CHECK(cache->bytes() <= uint64_t{40} << 20);
  now_s += DiskCache::kRestS;
  CHECK(parts_of("b") == 16);
  keep("d");
  CHECK(parts_of("a") == 0);
  CHECK(parts_of("b") == 16);
  CHECK(parts_of("d") == 16);
  CHECK(cache->bytes() <= uint64_t{40} << 20);
}

// Objects of 4 MiB in blocks of 1 MiB, a clock, and what it costs to read them.
struct Readings {
  static constexpr uint64_t kBlock = 1 << 20;
  static constexpr int kBlocks = 4;

  // Reads one from its beginning to its end, and keeps what is not there. How many blocks were not.
  int Take(DiskCache& cache, const std::string& name, const void* reader,
           int64_t seconds_a_block = 0) {
    int asked = 0;
    std::string out(kBlock, '\0');
    for (uint64_t at = 0; at < object.size(); at += kBlock) {
      now_s += seconds_a_block;
      if (!cache.Read(name, object.size(), at, {reinterpret_cast<uint8_t*>(out.data()), kBlock},
                      reader)) {
        ++asked;
        cache.Write(name, object.size(), at, PartOf(object, at, kBlock), reader);
      }
    }
    cache.Passed(name, reader);
    return asked;
  }

  const std::string object = Bytes(kBlocks * kBlock);
  int64_t now_s = 2'000'000'000;
  const DiskCache::Clock clock = [this] { return now_s; };
};

TEST_CASE("of twice the folder's size half is there in each pass, however long a pass takes") {
  constexpr int kObjects = 8;
  std::vector<std::string> names;
  for (int i = 0; i < kObjects; ++i) names.push_back(std::to_string(i));
  for (const bool is_needed : {true, false}) {
    Readings readings;
    const ScratchFolder folder;
    const auto cache = Open(folder.path(), 17 << 20, readings.clock);
    const auto reader = std::make_shared<int>();
    const std::shared_ptr<void> needed = is_needed ? cache->Need(reader, names) : nullptr;
    for (int pass = 0; pass < 4; ++pass) {
      int asked = 0;
      // A pass takes 160 minutes.
      for (const std::string& name : names) asked += readings.Take(*cache, name, reader.get(), 300);
      if (pass == 0) continue;
      INFO(pass);
      // By age alone each object is gone when its turn comes.
      constexpr int kAll = kObjects * Readings::kBlocks;
      if (is_needed) CHECK(asked <= kAll * 6 / 10);
      if (!is_needed) CHECK(asked == kAll);
    }
    CHECK(cache->bytes() <= uint64_t{17} << 20);
  }
}

TEST_CASE("what is ahead of another pipeline takes the place of what all have passed") {
  Readings readings;
  const ScratchFolder folder;
  // There is room for two.
  const auto cache = Open(folder.path(), 9 << 20, readings.clock);
  const auto first = std::make_shared<int>(), second = std::make_shared<int>();
  const std::vector<std::string> names = {"0", "1", "2", "3"};
  const std::shared_ptr<void> needed[] = {cache->Need(first, names), cache->Need(second, names)};
  const auto kept = [&](const std::string& name) {
    return cache->KeptBytes(name, readings.object.size()) == readings.object.size();
  };
  readings.Take(*cache, "0", first.get());
  readings.Take(*cache, "1", first.get());
  CHECK((kept("0") && kept("1")));
  // Both are ahead of the second one.
  readings.Take(*cache, "2", first.get());
  CHECK((kept("0") && kept("1")));
  CHECK(readings.Take(*cache, "0", second.get()) == 0);
  readings.now_s += 60;
  readings.Take(*cache, "3", first.get());
  CHECK((!kept("0") && kept("1") && kept("3")));
  CHECK(readings.Take(*cache, "1", second.get()) == 0);
  CHECK(readings.Take(*cache, "2", second.get()) == Readings::kBlocks);
  CHECK(readings.Take(*cache, "3", second.get()) == 0);
  // Nobody reads it any more in this pass, and the others come before it in the next one.
  CHECK((kept("1") && !kept("2") && kept("3")));
}

TEST_CASE("what a pipeline has needed makes room as soon as its last plan goes") {
  Readings readings;
  const ScratchFolder folder;
  const auto cache = Open(folder.path(), 5 << 20, readings.clock);
  const auto first = std::make_shared<int>(), second = std::make_shared<int>();
  CHECK(readings.Take(*cache, "a", nullptr) == Readings::kBlocks);
  // Who has a plan and reads nothing says nothing of what is there.
  cache->Need(second, {"a"}).reset();
  CHECK(readings.Take(*cache, "b", second.get()) == Readings::kBlocks);
  CHECK(readings.Take(*cache, "a", nullptr) == 0);
  std::shared_ptr<void> plan = cache->Need(first, {"a"});
  std::shared_ptr<void> next_plan = cache->Need(first, {"a"});
  const std::shared_ptr<void> other = cache->Need(second, {"b"});
  CHECK(readings.Take(*cache, "a", first.get()) == 0);
  plan.reset();
  CHECK(readings.Take(*cache, "b", second.get()) == Readings::kBlocks);
  CHECK(readings.Take(*cache, "a", first.get()) == 0);
  next_plan.reset();
  CHECK(readings.Take(*cache, "b", second.get()) == Readings::kBlocks);
  CHECK(readings.Take(*cache, "b", second.get()) == 0);
  // What has read nothing for an hour needs nothing.
  readings.now_s += DiskCache::kRestS;
  CHECK(readings.Take(*cache, "c", nullptr) == Readings::kBlocks);
  CHECK(readings.Take(*cache, "c", nullptr) == 0);
}

TEST_CASE("what a pipeline will read again stays though another process looks for room") {
  Readings readings;
  const ScratchFolder folder;
  const auto cache = Open(folder.path(), 9 << 20, readings.clock);
  const auto other = Open(folder.path(), 9 << 20, readings.clock);
  const auto reader = std::make_shared<int>();
  const std::shared_ptr<void> needed = cache->Need(reader, {"a", "b"});
  readings.Take(*cache, "a", reader.get());
  // Two hours of this one, behind which the first comes again.
  readings.Take(*cache, "b", reader.get(), 1800);
  CHECK(readings.Take(*other, "c", nullptr) == Readings::kBlocks);
  CHECK(readings.Take(*cache, "a", reader.get()) == 0);
}

TEST_CASE("a folder that others may write in is refused") {
  const ScratchFolder folder;
  std::filesystem::create_directory(folder / "open");
  chmod((folder / "open").c_str(), 0777);
  CHECK(absl::IsPermissionDenied(DiskCache::Open(folder / "open", 0).status()));
  std::ofstream(folder / "file") << "x";
  CHECK(!DiskCache::Open(folder / "file", 0).ok());
}

TEST_CASE("fault 29: whenever a writer is killed, what the cache gives is whole") {
  const ScratchFolder folder;
  const std::string object = Bytes(4 << 20);
  std::mt19937 dice(5);
  int found = 0;
  for (int round = 0; round < 40; ++round) {
    int ready[2];
    REQUIRE(pipe(ready) == 0);
    const pid_t child = fork();
    if (child == 0) {
      // Two objects, so that files are made again and again.
      const auto cache = DiskCache::Open(folder.path(), 0);
      if (!cache.ok()) _exit(1);
      if (write(ready[1], "r", 1) != 1) _exit(1);
      for (int i = round;; ++i) {
        const std::string name = std::to_string(i % 50);
        unlink((folder / "none").c_str());
        for (uint64_t at = 0; at < object.size(); at += 64 << 10)
          (*cache)->Write(name, object.size(), at, PartOf(object, at, 64 << 10));
      }
    }
    char byte;
    REQUIRE(read(ready[0], &byte, 1) == 1);
    close(ready[0]);
    close(ready[1]);
    // As long as some thousands of system calls take.
    for (uint32_t left = dice() % 20'000; left > 0; --left) getppid();
    kill(child, SIGKILL);
    int ended = 0;
    REQUIRE(waitpid(child, &ended, 0) == child);
    const auto cache = Open(folder.path(), 0);
    for (int i = 0; i < 50; ++i) {
      for (uint64_t at = 0; at < object.size(); at += 256 << 10) {
        const std::string part = Read(*cache, std::to_string(i), object.size(), at, 256 << 10);
        if (part.empty()) continue;
        ++found;
        REQUIRE(part == object.substr(at, 256 << 10));
      }
    }
  }
  CHECK(found > 0);
}

// Of this process: beyond it, writing fails as on a full disk.
class SmallFiles {
 public:
  explicit SmallFiles(rlim_t bytes) {
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit small{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &small);
  }
  ~SmallFiles() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, SIG_DFL);
  }

 private:
  rlimit before_;
};

TEST_CASE("fault 29: what a full disk does not take is not there, and is kept when there is room") {
  const std::string object = Bytes(64 * kPage);
  for (const uint64_t room : {uint64_t{0}, kPage, 10 * kPage + 1, 40 * kPage}) {
    INFO(room);
    const ScratchFolder folder;
    const auto cache = Open(folder / "cache", 0);
    {
      const SmallFiles small(room);
      cache->Write("a", object.size(), 0, PartOf(object, 0, object.size()));
      for (uint64_t at = 0; at < object.size(); at += kPage) {
        const std::string page = Read(*cache, "a", object.size(), at, kPage);
        CHECK((page.empty() || page == object.substr(at, kPage)));
      }
    }
    cache->Write("a", object.size(), 0, PartOf(object, 0, object.size()));
    CHECK(Read(*cache, "a", object.size(), 0, object.size()) == object);
  }
}

TEST_CASE("fault 29: two daemons in one folder give whole pages only") {
  const ScratchFolder folder;
  const std::string object = Bytes(2 << 20);
  constexpr uint64_t kPiece = 64 << 10;
  const auto write_all = [&](DiskCache& cache, int i) {
    for (uint64_t at = 0; at < object.size(); at += kPiece)
      cache.Write(std::to_string(i % 10), object.size(), at, PartOf(object, at, kPiece));
  };
  const pid_t child = fork();
  if (child == 0) {
    // There is room for five, so that each makes room for the other.
    const auto cache = DiskCache::Open(folder.path(), 5 * object.size());
    for (int i = 0; cache.ok(); ++i) write_all(**cache, i);
    _exit(1);
  }
  const auto cache = Open(folder.path(), 5 * object.size());
  uint64_t found = 0;
  for (int round = 0; round < 30; ++round) {
    write_all(*cache, round * 7);
    for (int i = 0; i < 10; ++i) {
      for (uint64_t at = 0; at < object.size(); at += kPiece) {
        const std::string part = Read(*cache, std::to_string(i), object.size(), at, kPiece);
        if (part.empty()) continue;
        ++found;
        REQUIRE(part == object.substr(at, kPiece));
      }
    }
  }
  kill(child, SIGKILL);
  int ended = 0;
  CHECK(waitpid(child, &ended, 0) == child);
  CHECK(WIFSIGNALED(ended));
  CHECK(found > 0);
}

TEST_CASE("those who write at the same time do not take more than there is") {
  const std::string object = Bytes(4 << 20);
  for (int round = 0; round < 10; ++round) {
    const ScratchFolder folder;
    // There is room for one.
    const auto cache = Open(folder / "cache", 6 << 20);
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, i] {
        cache->Write(std::to_string(i), object.size(), 0, PartOf(object, 0, object.size()));
      });
    }
    for (std::thread& thread : threads) thread.join();
    uint64_t kept = 0;
    for (int i = 0; i < 4; ++i) kept += cache->KeptBytes(std::to_string(i), object.size());
    CHECK(kept == object.size());
  }
}

}  // namespace
}  // namespace penstock
