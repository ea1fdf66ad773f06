// Reads whose bytes another machine has: nobody waits for them in a worker, and they come back in
// whatever order they arrive, or never (fault 28).
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/file.h"
#include "server/engine/run/executor.h"
#include "tests/support/catch.h"
#include "tests/support/pipeline.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"
#include "tests/support/stages.h"

namespace penstock::test {
namespace {

// The machine's files, as if they were elsewhere: what was not fetched is not there. A thread has
// the ranges arrive, in an order that it draws.
class FarFiles final : public FileSystem {
 public:
  explicit FarFiles(uint64_t seed = 1) : dice_(seed), network_([this] { Run(); }) {}
  ~FarFiles() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
    network_.join();
  }

  // Nothing arrives before so many ranges have been asked for; then all do.
  void WaitFor(size_t ranges) { at_least_ = ranges; }
  // From now on a range of that path does not arrive, but this does.
  void Fail(const std::string& path, absl::Status status) {
    fails_path_ = path;
    fails_with_ = std::move(status);
  }
  // Nothing arrives any more; who wants a range no more is told so.
  void Silence() { silent_ = true; }

  // Reads of records that had not been fetched.
  int waited() const { return waited_; }
  size_t fetched() const { return num_fetched_; }

  // So called they are files of another machine for the plan, too.
  static constexpr char kAddress[] = "far://";

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    auto file = LocalFileSystem().Open(std::string(absl::StripPrefix(path, kAddress)));
    if (!file.ok()) return file.status();
    return std::make_shared<File>(*this, *std::move(file));
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    auto files = LocalFileSystem().List(std::string(absl::StripPrefix(pattern, kAddress)));
    if (!files.ok() || !absl::StartsWith(pattern, kAddress)) return files;
    for (ListedFile& file : *files) file.path = absl::StrCat(kAddress, file.path);
    return files;
  }

 private:
  struct Range {
    std::shared_ptr<std::set<std::pair<uint64_t, uint64_t>>> ranges;
    std::string path;
    uint64_t begin, end;
    Completion arrived;
  };

  class File final : public RandomAccessFile {
   public:
    File(FarFiles& files, std::shared_ptr<RandomAccessFile> file)
        : files_(files), file_(std::move(file)) {}
    const std::string& path() const override { return file_->path(); }
    uint64_t size() const override { return file_->size(); }
    FileVersion version() const override { return file_->version(); }
    absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
      // What tells one file from another is read when a pipeline is made.
      constexpr size_t kEndBytes = 4096;
      if (out.size() > kEndBytes && !Has(offset, std::min(offset + out.size(), size())))
        ++files_.waited_;
      return file_->ReadAt(offset, out);
    }
    bool HasFetched(uint64_t offset, uint64_t bytes) const override {
      return Has(offset, std::min(offset + bytes, size()));
    }
    void Fetch(uint64_t offset, uint64_t bytes, Completion arrived) override {
      std::lock_guard<std::mutex> lock(files_.mutex_);
      if (files_.silent_) {
        const auto held = std::make_shared<Completion>(std::move(arrived));
        held->OnCancel([held] { held->End(absl::CancelledError("not wanted any more")); });
        return;
      }
      // Some more, so that a record across the end is there.
      files_.asked_.push_back(
          {ranges_, path(), offset, std::min(offset + 2 * bytes, size()), std::move(arrived)});
      files_.changed_.notify_all();
    }

   private:
    bool Has(uint64_t begin, uint64_t end) const {
      std::lock_guard<std::mutex> lock(files_.mutex_);
      return begin >= end || std::any_of(ranges_->begin(), ranges_->end(), [&](const auto& range) {
               return range.first <= begin && end <= range.second;
             });
    }

    FarFiles& files_;
    const std::shared_ptr<RandomAccessFile> file_;
    const std::shared_ptr<std::set<std::pair<uint64_t, uint64_t>>> ranges_ =
        std::make_shared<std::set<std::pair<uint64_t, uint64_t>>>();
  };

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(
          lock, [this] { return over_ || (!asked_.empty() && asked_.size() >= at_least_.load()); });
      if (over_) return;
      at_least_ = 0;
      const size_t next = dice_() % asked_.size();
      Range range = std::move(asked_[next]);
      asked_.erase(asked_.begin() + next);
      absl::Status status;
      if (range.path == fails_path_) {
        status = fails_with_;
      } else {
        range.ranges->insert({range.begin, range.end});
        ++num_fetched_;
      }
      lock.unlock();
      range.arrived.End(status);
      lock.lock();
    }
  }

  std::mt19937_64 dice_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Range> asked_;  // under mutex_
  bool over_ = false;         // under mutex_
  std::atomic<size_t> at_least_{0};
  std::atomic<bool> silent_{false};
  std::atomic<int> waited_{0};
  std::atomic<size_t> num_fetched_{0};
  std::string fails_path_;
  absl::Status fails_with_;
  std::thread network_;
};

std::string TextOf(const std::string& pattern, int cycle_length) {
  return Stages(absl::StrCat("tfrecord { files: '", pattern, "' cycle_length: ", cycle_length,
                             " } | parse_example { feature { key: 'n' int64 {} } } | batch { "
                             "batch_size: 100 }"));
}

TEST_CASE("records whose bytes arrive later are the same, and no worker waits for them") {
  ScratchFolder folder;
  // Some chunks each.
  for (int shard = 0; shard < 5; ++shard)
    WriteShard(folder / absl::StrCat(shard), 10'000 * shard, 900 + 50 * shard, 200);
  const std::string text = TextOf(folder / "*", 3);
  const RunResult expected = RunText(text);
  REQUIRE(expected.status.ok());
  for (const int workers : {1, 2, 8}) {
    INFO(workers << " workers");
    FarFiles files(workers);
    const auto plan = PlanText(text, files);
    REQUIRE(plan.ok());
    const RunResult result = RunPlan(*plan, {.workers = workers});
    CHECK(result.status.ok());
    CHECK(result.batches == expected.batches);
    CHECK(files.waited() == 0);
    CHECK(files.fetched() >= 10);
    CHECK(result.stats.stages[0].away_ns > 0);
    CHECK(result.stats.tasks_away == 0);
  }
}

TEST_CASE("one worker has several files fetched at a time") {
  ScratchFolder folder;
  for (int shard = 0; shard < 4; ++shard)
    WriteShard(folder / absl::StrCat(shard), 10'000 * shard, 500, 200);
  FarFiles files;
  const auto plan = PlanText(TextOf(folder / "*", 4), files);
  REQUIRE(plan.ok());
  // A worker that waited for the first one would never ask for the second.
  files.WaitFor(2);
  const RunResult result = RunPlan(*plan, {.workers = 1});
  CHECK(result.status.ok());
  CHECK(Int64s(result).size() == 2000);
  CHECK(files.fetched() >= 4);
}

TEST_CASE("small files on another machine are asked for before their turn") {
  ScratchFolder folder;
  for (int shard = 0; shard < 6; ++shard)
    WriteShard(folder / absl::StrCat(shard), 10'000 * shard, 20, 200);
  const auto plan_of = [&](FarFiles& files) {
    const auto plan = PlanText(TextOf(FarFiles::kAddress + (folder / "*"), 2), files);
    REQUIRE(plan.ok());
    return *plan;
  };
  FarFiles at_once;
  const RunResult expected = RunPlan(plan_of(at_once));
  REQUIRE(expected.status.ok());
  FarFiles files;
  const auto plan = plan_of(files);
  // Two are read in turns: who had asked for one more only would wait for ever.
  files.WaitFor(6);
  const RunResult result = RunPlan(plan);
  CHECK(result.status.ok());
  CHECK(Int64s(result).size() == 120);
  CHECK(result.batches == expected.batches);
}

TEST_CASE("bytes that cannot be had are the stream's error, behind the steps in front of it") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 250);
  WriteShard(folder / "b", 250, 100);
  FarFiles files;
  const auto plan = PlanText(TextOf(folder / "*", 1), files);
  REQUIRE(plan.ok());
  files.Fail(folder / "b", absl::UnavailableError("503 SlowDown"));
  const RunResult result = RunPlan(*plan);
  CHECK(result.finished);
  CHECK(result.batches.size() == 2);
  const std::string message(result.status.message());
  INFO(message);
  CHECK(result.status.code() == absl::StatusCode::kUnavailable);
  CHECK(absl::StrContains(message, "503 SlowDown"));
  CHECK(absl::StrContains(message, "b, record 0, offset 0"));
  CHECK(absl::StrContains(message, "stage "));
}

// Has slots, and keeps nothing.
class NoSink final : public BatchSink {
 public:
  explicit NoSink(const Plan& plan) : memory_(plan.slot_bytes() + 64) {}
  bool TryClaim(ClaimedSlot* claimed) override {
    claimed->tensors = {memory_.data()};
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo&) override {}
  void Finish(const absl::Status&) override {}
  void WaitForSlot(absl::Duration) override {}
  void Interrupt() override {}

 private:
  std::vector<uint8_t> memory_;
};

TEST_CASE("a stop has what is fetched cancelled, and waits for its end") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 500);
  FarFiles files;
  const auto plan = PlanText(TextOf(folder / "a", 1), files);
  REQUIRE(plan.ok());
  files.Silence();
  NoSink sink(**plan);
  ExecutorOptions options;
  options.workers = 1;
  auto executor = Executor::Create(*plan, sink, options);
  REQUIRE(executor.ok());
  REQUIRE((*executor)->Start().ok());
  while ((*executor)->Snapshot().tasks_away == 0) std::this_thread::yield();
  CHECK((*executor)->TryStop());
  CHECK((*executor)->HasEnded());
}

TEST_CASE("bytes that do not arrive within the deadline end the stream, and say where from") {
  ScratchFolder folder;
  WriteShard(folder / "a", 0, 500);
  FarFiles files;
  const auto plan = PlanText(TextOf(folder / "a", 1), files);
  REQUIRE(plan.ok());
  files.Silence();
  class EndSink final : public BatchSink {
   public:
    bool TryClaim(ClaimedSlot*) override { return false; }
    void Publish(const ClaimedSlot&, const StepInfo&) override {}
    void Finish(const absl::Status& status) override { end.set_value(status); }
    void WaitForSlot(absl::Duration) override {}
    void Interrupt() override {}
    std::promise<absl::Status> end;
  } sink;
  std::future<absl::Status> end = sink.end.get_future();
  ExecutorOptions options;
  options.workers = 1;
  options.read_deadline_ns = 1;
  auto executor = Executor::Create(*plan, sink, options);
  REQUIRE(executor.ok());
  REQUIRE((*executor)->Start().ok());
  // The first look only tells it that somebody looks.
  while (end.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready)
    (*executor)->EndAtHungRead();
  const absl::Status status = end.get();
  INFO(status.ToString());
  CHECK(absl::IsDeadlineExceeded(status));
  CHECK(absl::StrContains(status.message(), "fetching did not return"));
  CHECK(absl::StrContains(status.message(), folder / "a"));
  (*executor)->Stop();
}

}  // namespace
}  // namespace penstock::test
