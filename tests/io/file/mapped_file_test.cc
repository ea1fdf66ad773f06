#include "io/file/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

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

TEST_CASE("A map gives bytes") {
  const ScratchFolder folder;
  const std::string bytes = Frame("first") + Frame("") + Frame(std::string(20000, 'x'));
  const auto file = Map(folder / "data", bytes);
  std::vector<uint8_t> out(bytes.size());
  REQUIRE(file->Copy(0, absl::MakeSpan(out)).ok());
  CHECK((std::string(out.begin(), out.end()) == bytes));
  CHECK(file->Copy(12, absl::MakeSpan(out.data(), 5)).ok());
  CHECK(std::string(out.begin(), out.begin() + 5) == "first");
  CHECK(file->Copy(bytes.size() - 5, absl::MakeSpan(out.data(), 5)).ok());

  // Behind the end, and where a sum of both wraps.
  for (const uint64_t offset : {uint64_t{bytes.size()} - 4, uint64_t{bytes.size()},
                                uint64_t{1} << 40, ~uint64_t{0} - 4, ~uint64_t{0}}) {
    CHECK(file->Copy(offset, absl::MakeSpan(out.data(), 5)).code() ==
          absl::StatusCode::kOutOfRange);
  }
  CHECK(!file->torn());
  const auto empty = Map(folder / "empty", "");
  CHECK(empty->Copy(0, absl::Span<uint8_t>()).ok());
  CHECK(empty->Copy(0, absl::MakeSpan(out)).code() == absl::StatusCode::kOutOfRange);
  CHECK(MappedFile::Map(folder / "none").status().code() == absl::StatusCode::kNotFound);
  CHECK(MappedFile::Map(folder.path()).status().code() == absl::StatusCode::kPermissionDenied);
}

TEST_CASE(
    "A map of an open file has the bytes that it had then, and knows which of them are in memory") {
  const ScratchFolder folder;
  const std::string path = folder / "data";
  constexpr uint64_t kHoleBytes = 1 << 20;
  const std::string bytes(5000, 'x');
  std::ofstream(path, std::ios::binary) << bytes;
  REQUIRE(truncate(path.c_str(), kHoleBytes) == 0);
  const auto opened = LocalFileSystem().Open(path);
  REQUIRE(opened.ok());
  std::ofstream(path, std::ios::binary | std::ios::app) << "more";
  const auto map = MappedFile::Map(**opened);
  REQUIRE(map.ok());
  CHECK((*map)->size() == kHoleBytes);
  CHECK((*map)->version() == (*opened)->version());
  std::vector<uint8_t> out(bytes.size());
  REQUIRE((*map)->Copy(0, absl::MakeSpan(out)).ok());
  CHECK((std::string(out.begin(), out.end()) == bytes));

  CHECK((*map)->InMemoryUntil(0, 5000) == 5000);
  CHECK((*map)->InMemoryUntil(4999, 5000) == 5000);
  // A hole that nobody has looked at has no pages.
  const uint64_t hole = (*map)->InMemoryUntil(0, kHoleBytes);
  CHECK(hole >= bytes.size());
  CHECK(hole < kHoleBytes / 2);
  CHECK((*map)->InMemoryUntil(4100, kHoleBytes) == hole);
  CHECK((*map)->InMemoryUntil(kHoleBytes / 2 + 1, kHoleBytes) == kHoleBytes / 2 + 1);
  // Beyond its end there is nothing.
  CHECK((*map)->InMemoryUntil(0, kHoleBytes + 1) == 0);
  CHECK((*map)->InMemoryUntil(kHoleBytes, kHoleBytes) == kHoleBytes);
  CHECK((*map)->InMemoryUntil(~uint64_t{0}, 2) == ~uint64_t{0});
  REQUIRE((*map)->Copy(kHoleBytes / 2, absl::MakeSpan(out)).ok());
  CHECK((*map)->InMemoryUntil(kHoleBytes / 2 + 1, kHoleBytes / 2 + 10) == kHoleBytes / 2 + 10);
}

TEST_CASE("fault 24: truncation while it is mapped is an error, at every page") {
  const ScratchFolder folder;
  const std::string bytes = Frame(std::string(50000, 'x'));
  for (const size_t cut : {0, 1, 4096, 5000, 12288, 49152, 50010}) {
    const auto file = Map(folder / "data", bytes);
    REQUIRE(truncate((folder / "data").c_str(), cut) == 0);
    std::vector<uint8_t> out(bytes.size());
    const absl::Status status = file->Copy(0, absl::MakeSpan(out));
    INFO("cut at " << cut << ": " << status.message());
    // Within the last page there is no fault, and zeros: for the checksum to find.
    CHECK(file->torn() == (cut <= 49152));
    CHECK(status.ok() == !file->torn());
    if (file->torn()) {
      CHECK(status.code() == absl::StatusCode::kDataLoss);
      CHECK_THAT(std::string(status.message()), Catch::StartsWith("the file became shorter"));
      CHECK(!file->Copy(0, absl::MakeSpan(out).first(1)).ok());
    }
  }
}

TEST_CASE("fault 24: threads that copy while the file is cut get bytes or errors") {
  const ScratchFolder folder;
  const std::string bytes = Frame(std::string(1 << 20, 'x'));
  const auto other = Map(folder / "other", bytes);
  for (int round = 0; round < 10; ++round) {
    const auto file = Map(folder / "data", bytes);
    std::atomic<int> wrong{0};
    std::atomic<int> started{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
      readers.emplace_back([&] {
        std::vector<uint8_t> out(bytes.size());
        while (true) {
          const absl::Status status = file->Copy(0, absl::MakeSpan(out));
          ++started;
          if (status.code() == absl::StatusCode::kDataLoss) return;
          if (!status.ok() || std::memcmp(out.data(), bytes.data(), bytes.size()) != 0) ++wrong;
        }
      });
    }
    while (started < 3) std::this_thread::yield();
    REQUIRE(truncate((folder / "data").c_str(), 9000) == 0);
    for (std::thread& reader : readers) reader.join();
    CHECK(wrong == 0);
  }
  CHECK(!other->torn());
}

TEST_CASE("There are at most so many maps, and places are used again") {
  const ScratchFolder folder;
  std::vector<std::unique_ptr<MappedFile>> files;
  files.push_back(Map(folder / "data", "bytes"));
  while (files.size() < kMaxMappedFiles) files.push_back(*MappedFile::Map(folder / "data"));
  CHECK(MappedFile::Map(folder / "data").status().code() == absl::StatusCode::kResourceExhausted);
  files.erase(files.begin() + 500);
  CHECK(MappedFile::Map(folder / "data").ok());
}

// Runs `body` in a process of its own, which must not return from it.
int StatusOf(void (*body)(const char* path), const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    body(path.c_str());
    _exit(99);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return status;
}

// Touches a page behind the end of a file that is not ours to guard.
void Fault(const char* path) {
  const int fd = open(path, O_RDWR);
  auto* memory = static_cast<volatile char*>(mmap(nullptr, 8192, PROT_READ, MAP_SHARED, fd, 0));
  (void)memory[4096];
}

TEST_CASE("SIGBUS elsewhere goes on to the handler that was there, or kills") {
  const ScratchFolder folder;
  const std::string path = folder / "small";
  std::ofstream(path) << "x";
  // The guard stays for the life of a process: another test of this one may have installed it.
  struct sigaction present;
  sigaction(SIGBUS, nullptr, &present);
  const bool first = present.sa_handler == SIG_DFL;
  const int handled = StatusOf(
      [](const char* data) {
        signal(SIGBUS, [](int) { _exit(42); });
        const auto file = MappedFile::Map(data);
        Fault(data);
      },
      path);
  CHECK(WIFEXITED(handled));
  CHECK(WEXITSTATUS(handled) == 42);
  const int killed = StatusOf(
      [](const char* data) {
        signal(SIGBUS, SIG_DFL);  // a sanitizer has a handler of its own
        const auto file = MappedFile::Map(data);
        Fault(data);
      },
      path);
  INFO("the guard is " << (first ? "new" : "an old one"));
  CHECK(WIFSIGNALED(killed));
  CHECK(WTERMSIG(killed) == SIGBUS);
}

}  // namespace
}  // namespace penstock
