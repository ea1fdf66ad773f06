// Indices that the order takes are built by others than the front: nobody waits for it meanwhile,
// though it hangs (fault 28).
#include <atomic>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/engine/read/known_indices.h"
#include "server/engine/run/executor.h"
#include "tests/support/armed_files.h"
#include "tests/support/catch.h"
#include "tests/support/counting_sink.h"
#include "tests/support/hanging_files.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

constexpr char kParsed[] =
    "| parse_example { feature { key: 'n' int64 {} } } | batch { batch_size: 10 }";

// Some files whose index takes until LetGo() to build: those that end in "b", once armed.
struct SlowIndex : ArmedFiles {
  SlowIndex() : ArmedFiles([](const std::string& path) { return absl::EndsWith(path, "b"); }) {
    WriteShard(folder / "a", 0, 95);
    WriteShard(folder / "b", 95, 100);
  }

  // The files are planned while nothing hangs.
  std::shared_ptr<const Plan> PlannedSlow(const std::string& stages) {
    auto plan = Planned(stages, files);
    armed = true;
    return plan;
  }
};

TEST_CASE("while an index is built, a single worker goes on with all steps in front of it") {
  SlowIndex slow;
  // Steps of several blocks: the order looks for the next one while most of the last one is not
  // computed.
  constexpr int kRows = 640;
  WriteShard(slow.folder / "a", 0, 3 * kRows + 95);
  const auto plan = slow.PlannedSlow(
      absl::StrCat("concatenate { (| tfrecord { files: '", slow.folder / "a",
                   "' } |) (| tfrecord { files: '", slow.folder / "b",
                   "' } | shuffle { global: true seed: 1 } |) } | parse_example { feature { "
                   "key: 'n' int64 {} } } | batch { batch_size: ",
                   kRows, " }"));
  CountingSink sink(*plan);
  const auto executor = Started(plan, sink);
  REQUIRE(slow.WaitUntilHanging());
  // Further elements stand in a step that needs the index.
  CHECK(sink.WaitForSteps(3));
  CHECK(sink.steps() == 3);
  CHECK(slow.files.hanging() == 1);
  slow.files.LetGo();
  CHECK(sink.WaitForEnd());
  CHECK(sink.status().ok());
  CHECK(sink.steps() == 4);
  executor->Stop();
}

TEST_CASE("while an index is built, whoever holds the stream or asks for its pass is answered") {
  SlowIndex slow;
  const auto plan =
      slow.PlannedSlow(absl::StrCat("tfrecord { files: '", slow.folder / "b",
                                    "' } | shuffle { global: true seed: 1 } ", kParsed));
  CountingSink sink(*plan);
  const auto executor = Started(plan, sink);
  REQUIRE(slow.WaitUntilHanging());
  // The stream goes on: neither has been cancelled, nor has it failed.
  auto held = std::async(std::launch::async, [&executor] { return executor->Hold(); });
  const bool is_held = held.wait_for(kHangs) == std::future_status::ready;
  CHECK(is_held);
  CHECK(slow.files.hanging() == 1);
  slow.files.LetGo();
  CHECK(held.get() == 0);
  CHECK(executor->pass() == 0);
  executor->Release();
  CHECK(sink.WaitForEnd());
  CHECK(sink.steps() == 10);
  executor->Stop();
}

TEST_CASE("while the index of one pipeline is built, another one over the same files goes on") {
  SlowIndex slow;
  const auto shuffled =
      slow.PlannedSlow(absl::StrCat("tfrecord { files: '", slow.folder / "b",
                                    "' } | shuffle { global: true seed: 1 } ", kParsed));
  const auto plain =
      Planned(absl::StrCat("tfrecord { files: '", slow.folder / "a", "' } ", kParsed), slow.files);
  CountingSink waits(*shuffled), goes_on(*plain);
  const auto first = Started(shuffled, waits);
  REQUIRE(slow.WaitUntilHanging());
  const auto second = Started(plain, goes_on);
  CHECK(goes_on.WaitForEnd());
  CHECK(goes_on.steps() == 10);
  CHECK(slow.files.hanging() == 1);
  slow.files.LetGo();
  CHECK(waits.WaitForEnd());
  first->Stop();
  second->Stop();
}

TEST_CASE("the indices of several files are built at the same time") {
  SlowIndex slow;
  WriteShard(slow.folder / "2b", 200, 50);
  const auto plan =
      slow.PlannedSlow(absl::StrCat("tfrecord { files: '", slow.folder / "*b",
                                    "' } | shuffle { global: true seed: 1 } ", kParsed));
  CountingSink sink(*plan);
  const auto executor = Started(plan, sink);
  CHECK(slow.WaitUntilHanging(2));
  slow.files.LetGo();
  CHECK(sink.WaitForEnd());
  CHECK(sink.steps() == 15);
  executor->Stop();
}

TEST_CASE("a read of an index that takes longer than the deadline ends the stream") {
  SlowIndex slow;
  const auto plan =
      slow.PlannedSlow(absl::StrCat("tfrecord { files: '", slow.folder / "b",
                                    "' } | shuffle { global: true seed: 1 } ", kParsed));
  CountingSink sink(*plan);
  ExecutorOptions options;
  options.read_deadline_ns = 1;
  const auto executor = Started(plan, sink, options);
  REQUIRE(slow.WaitUntilHanging());
  std::atomic<bool> over{false};
  std::thread looks([&] {
    while (!over) {
      executor->EndAtHungRead();
      std::this_thread::yield();
    }
  });
  CHECK(sink.WaitForEnd());
  over = true;
  looks.join();
  CHECK(absl::IsDeadlineExceeded(sink.status()));
  CHECK(absl::StrContains(sink.status().message(), slow.folder / "b"));
  slow.files.LetGo();
  executor->Stop();
}

TEST_CASE("an index that cannot be built is the error of the stage that needs it") {
  SlowIndex slow;
  FlipBit(slow.folder / "b", 40 * (ReadFile(slow.folder / "b").size() / 100));
  const auto plan = Planned(absl::StrCat("tfrecord { files: '", slow.folder / "b",
                                         "' } | shuffle { global: true seed: 1 } ", kParsed),
                            slow.files);
  CountingSink sink(*plan);
  const auto executor = Started(plan, sink);
  CHECK(sink.WaitForEnd());
  INFO(sink.status().ToString());
  CHECK(absl::IsDataLoss(sink.status()));
  CHECK(absl::StrContains(sink.status().message(), "stage shuffle"));
  CHECK(absl::StrContains(sink.status().message(), slow.folder / "b"));
  executor->Stop();
}

// A file whose reads behind the first ones wait until somebody wants no more of them.
class EndlessReads final : public FileSystem {
 public:
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    auto file = LocalFileSystem().Open(path);
    if (!file.ok()) return file.status();
    return std::make_shared<File>(*this, *std::move(file));
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }

  std::atomic<bool> armed{false};
  std::atomic<bool> stopping{false};
  std::atomic<int> reads{0};

 private:
  class File final : public RandomAccessFile {
   public:
    File(EndlessReads& files, std::shared_ptr<RandomAccessFile> file)
        : files_(files), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    uint64_t size() const override { return file_->size(); }
    FileVersion version() const override { return file_->version(); }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      // Each read is quick, but for one: it waits for the stop.
      if (files_.armed && ++files_.reads == 8) {
        while (!files_.stopping) std::this_thread::yield();
      }
      return file_->ReadAt(offset, out);
    }

   private:
    EndlessReads& files_;
    const std::shared_ptr<RandomAccessFile> file_;
  };
};

TEST_CASE("a stop does not wait until an index is built") {
  ScratchFolder folder;
  // Each of its records takes a read of its own.
  std::vector<std::string> records;
  for (int64_t n = 0; n < 200; ++n) records.push_back(MakeRecord(n, 200'000));
  WriteRecords(folder / "a", records);
  EndlessReads files;
  const auto plan = Planned(absl::StrCat("tfrecord { files: '", folder / "a",
                                         "' } | shuffle { global: true seed: 1 } ", kParsed),
                            files);
  CountingSink sink(*plan);
  files.armed = true;
  const auto executor = Started(plan, sink);
  while (files.reads < 8) std::this_thread::yield();
  executor->Cancel();
  files.stopping = true;
  CHECK(executor->TryStop());
  CHECK(files.reads < 100);
  CHECK(sink.steps() == 0);
}

}  // namespace
}  // namespace penstock::test
