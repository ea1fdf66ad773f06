// Files on other machines are looked at for a fingerprint no longer than somebody wants it
// (fault 29).
#include "server/engine/read/far_ends.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/far_file.h"
#include "base/stop_flag.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

// Objects of a server that says nothing.
class SilentFiles final : public FileSystem {
 public:
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    return std::make_shared<File>(*this, path);
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> OpenListed(const ListedFile& file) override {
    return Open(file.path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string&) override {
    return std::vector<ListedFile>();
  }

  std::atomic<int> asked{0}, cancelled{0};

 private:
  class File final : public FarFile {
   public:
    File(SilentFiles& files, std::string path) : files_(files), path_(std::move(path)) {}
    const std::string& path() const override { return path_; }
    uint64_t size() const override { return 1 << 20; }
    absl::StatusOr<size_t> ReadAt(uint64_t, absl::Span<uint8_t>) override {
      return absl::InternalError("nothing has come");
    }
    void FetchAlone(uint64_t, uint64_t, Completion arrived) override {
      ++files_.asked;
      const auto held = std::make_shared<Completion>(std::move(arrived));
      held->OnCancel([held, &files = files_] {
        ++files.cancelled;
        held->End(absl::CancelledError("not wanted any more"));
      });
    }
    std::optional<absl::StatusOr<size_t>> ReadFetched(uint64_t, absl::Span<uint8_t>) override {
      return std::nullopt;
    }
    uint64_t read_to() const override { return 0; }

   private:
    SilentFiles& files_;
    const std::string path_;
  };
};

TEST_CASE("fault 29: a stop waits for no server that says nothing") {
  SilentFiles files;
  Manifest manifest;
  for (int i = 0; i < 3; ++i) {
    FileEntry& entry = manifest.emplace_back();
    entry.path = absl::StrCat("https://example.org/", i, ".tfrecord");
    entry.size_bytes = 1 << 20;
  }
  std::atomic<bool> stop{false};
  const StopFlag::Scope scope(&stop);
  FarEnds ends(files, manifest);
  std::thread stops([&] {
    while (files.asked < 6) std::this_thread::yield();
    stop = true;
  });
  CHECK_THROWS_AS(ends.Open(0), Stopped);
  stops.join();
  CHECK(files.cancelled == 6);
}

TEST_CASE("the ends of the next files are asked for before those of the first have come") {
  SilentFiles files;
  Manifest manifest;
  for (int i = 0; i < 600; ++i) {
    FileEntry& entry = manifest.emplace_back();
    entry.path = absl::StrCat("https://example.org/", i, ".tfrecord");
    entry.size_bytes = 1 << 20;
  }
  std::atomic<bool> stop{false};
  const StopFlag::Scope scope(&stop);
  std::thread stops([&] {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (files.asked < 2 * 512 && std::chrono::steady_clock::now() < end)
      std::this_thread::yield();
    stop = true;
  });
  {
    FarEnds ends(files, manifest);
    CHECK_THROWS_AS(ends.Open(0), Stopped);
  }
  stops.join();
  // Nobody waits for more than two windows of 256 files.
  CHECK(files.asked == 2 * 512);
  CHECK(files.cancelled == files.asked);
}

}  // namespace
}  // namespace penstock::test
