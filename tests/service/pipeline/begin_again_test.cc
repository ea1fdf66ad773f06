// What pipelines do when a disk, memory or a name is not what it was: at the end of a rest, after a
// restart, after a deletion.
#include <atomic>
#include <future>
#include <list>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/pending_call.h"
#include "server/service/tune/monitor.h"
#include "server/service/tune/tuner.h"
#include "tests/service/counting.h"
#include "tests/service/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

using test::Until;

v1::PipelineSpec Spec(const test::ScratchFolder& folder, const std::string& name,
                      const std::string& more = "") {
  return test::CountingSpec(folder / name, name, more + " workers: 1");
}

// Waits until the loop's thread has done it.
template <typename Work>
void OnLoop(EventLoop& loop, const Work& work) {
  std::promise<void> done;
  loop.Post([&] {
    work();
    done.set_value();
  });
  done.get_future().wait();
}

// Files whose opening hangs, of those named "hangs", while a test says so.
class HangingOpens final : public FileSystem {
 public:
  ~HangingOpens() override { LetGo(); }
  void Hang() { hangs_ = true; }
  void LetGo() {
    hangs_ = false;
    hangs_.notify_all();
  }
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    if (hangs_ && absl::EndsWith(path, "hangs")) {
      const PendingCall call("opening", path, 0);
      hangs_.wait(true);
    }
    return LocalFileSystem().Open(path);
  }
  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    return LocalFileSystem().List(pattern);
  }

 private:
  std::atomic<bool> hangs_ = false;
};

// Two pipelines, of which "hangs" rests, and its files hang.
struct AtRest {
  explicit AtRest(int deadline_ms) : loop(*EventLoop::Create()) {
    for (const char* name : {"hangs", "sound"}) {
      test::WriteShard(folder / name, 0, 40);
      v1::PipelineSpec spec = Spec(folder, name);
      spec.set_read_deadline_ms(deadline_ms);
      REQUIRE(table.Create(spec).ok());
    }
    const auto pipeline = *table.Find("hangs");
    pipeline->Rest();
    REQUIRE(pipeline->Stats().resting());
    files.Hang();
  }
  ~AtRest() { files.LetGo(); }

  const test::ScratchFolder folder;
  HangingOpens files;
  PipelineTable table{files, v1::WorkerDefaults()};
  const std::unique_ptr<EventLoop> loop;
};

TEST_CASE("fault 28: who attaches to what rests is told when its files have hung for too long") {
  AtRest daemon(/*deadline_ms=*/100);
  Sessions sessions(*daemon.loop, daemon.table, 64);
  std::list<test::Trainer> trainers;
  for (int i = 0; i < 2; ++i) trainers.emplace_back(sessions, 0, ring::ConsumerPosition(), "hangs");
  const test::Running running(*daemon.loop);
  for (test::Trainer& trainer : trainers) {
    const ring::Status refused = trainer.GetRefused();
    CHECK(refused.code == ring::Code::kDeadlineExceeded);
    CHECK(absl::StrContains(refused.message, daemon.folder / "hangs"));
  }
  daemon.files.LetGo();
}

TEST_CASE("fault 28: many who attach to what hangs without a deadline hold up themselves only") {
  AtRest daemon(/*deadline_ms=*/0);
  Sessions sessions(*daemon.loop, daemon.table, 64);
  std::list<test::Trainer> trainers;
  for (int i = 0; i < 20; ++i)
    trainers.emplace_back(sessions, 0, ring::ConsumerPosition(), "hangs");
  test::Trainer reads(sessions, 0, {}, "sound");
  const test::Running running(*daemon.loop);
  reads.Enter();
  reads.TakeStep();
  // Nor does whoever tunes it wait for them.
  CHECK((*daemon.table.Find("hangs"))->Tune({}, v1::Autotune()).ok());
  daemon.files.LetGo();
  for (test::Trainer& trainer : trainers) trainer.Enter();
}

TEST_CASE(
    "a pipeline of a release in which an op meant something else does not come back by itself") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 400);
  {
    PipelineJournal journal(*StateFolder::Open(folder / "state"));
    PipelineTable table(LocalFileSystem(), v1::WorkerDefaults(), &journal);
    REQUIRE(table.Create(Spec(folder, "p", "stage { repeat {} }")).ok());
    PipelineJournal::Entry entry = journal.Load().at(0);
    REQUIRE(entry.meanings.size() == 1);
    v1::StageMeaning* const meaning = entry.meanings[0].add_stage();
    meaning->set_place(0);
    meaning->set_number(2);
    REQUIRE(journal.Put(entry).ok());
  }
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults(), &journal);
  REQUIRE(table.ExpectKept().size() == 1);
  const absl::Status status = table.BringBack("p").status();
  INFO(status.ToString());
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(absl::StrContains(status.message(),
                          "stage tfrecord: the op tfrecord means something else in this release"));
  CHECK(absl::StrContains(status.message(), "delete the pipeline and create it anew"));
  // It is there still for the release that it is of.
  CHECK(table.Returning().size() == 1);
  CHECK(journal.Load().size() == 1);
}

TEST_CASE("a pipeline that finds too little memory after a restart begins when there is enough") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 400);
  {
    PipelineJournal journal(*StateFolder::Open(folder / "state"));
    PipelineTable table(LocalFileSystem(), v1::WorkerDefaults(), &journal);
    REQUIRE(table.Create(Spec(folder, "p", "stage { repeat {} }")).ok());
  }
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults(), &journal);
  v1::MemoryLimits limits;
  limits.set_max_bytes(1);
  table.SetMemoryLimits(limits);
  const auto loop = *EventLoop::Create();
  Sessions sessions(*loop, table, 16, &journal);
  REQUIRE(table.ExpectKept().size() == 1);
  sessions.Expect(*table.BringBack("p"));
  test::Trainer early(sessions, 0, {}, "p");
  const test::Running running(*loop);
  CHECK(early.GetRefused().code == ring::Code::kResourceExhausted);
  CHECK((*table.Find("p"))->Stats().state() == v1::PIPELINE_STATE_FAILED);
  limits.set_max_bytes(0);
  table.SetMemoryLimits(limits);
  std::optional<test::Trainer> late;
  OnLoop(*loop, [&] { late.emplace(sessions, 0, ring::ConsumerPosition(), "p"); });
  late->Enter();
  for (int step = 0; step < 30; ++step) late->TakeStep();
  CHECK((*table.Find("p"))->Stats().state() == v1::PIPELINE_STATE_RUNNING);
}

TEST_CASE(
    "a pipeline that finds too little memory for a consumer's position goes on when there is "
    "enough") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 400);
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults());
  const std::shared_ptr<Pipeline> pipeline =
      *table.Create(Spec(folder, "p", "stage { repeat {} }"));
  Newcomer newcomer;
  newcomer.spec.mode = ring::GroupMode::kSplit;
  newcomer.position.step = 2;
  {
    const auto first = pipeline->Attach(Newcomer());
    REQUIRE(first.ok());
    ring::Writer& writer = first->stream->writer();
    std::string& cursor = newcomer.position.cursor;
    Until([&] { return !(cursor = writer.Cursor(2)).empty(); });
    writer.Detach(first->handle.id);
  }
  v1::MemoryLimits limits;
  limits.set_max_bytes(1);
  table.SetMemoryLimits(limits);
  CHECK(absl::IsResourceExhausted(pipeline->Attach(newcomer).status()));
  CHECK(pipeline->Stats().state() == v1::PIPELINE_STATE_FAILED);
  CHECK(absl::IsResourceExhausted(pipeline->Attach(Newcomer()).status()));
  limits.set_max_bytes(0);
  table.SetMemoryLimits(limits);
  CHECK(pipeline->Attach(newcomer).ok());
  CHECK(pipeline->Stats().state() == v1::PIPELINE_STATE_RUNNING);
}

TEST_CASE("what a deleted pipeline is told writes nothing about another one of its name") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 40);
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults(), &journal);
  REQUIRE(table.Create(Spec(folder, "p")).ok());
  const std::shared_ptr<Pipeline> deleted = *table.Find("p");
  REQUIRE(table.Delete("p").ok());
  CHECK(absl::IsNotFound(deleted->Pause(true)));
  CHECK(journal.Load().empty());
  REQUIRE(table.Create(Spec(folder, "p")).ok());
  CHECK(absl::IsNotFound(deleted->Pause(true)));
  CHECK(absl::IsNotFound(deleted->SetSlowPolicy("g", ring::SlowPolicy::kSkip, 5)));
  RequestedChange requested;
  requested.change.set_workers(2);
  CHECK_FALSE(deleted->Update(requested).ok());
  deleted->KeepState();
  REQUIRE(journal.Load().size() == 1);
  CHECK_FALSE(journal.Load()[0].paused);
  CHECK(journal.Load()[0].slow_policies.empty());
  // Its own state is kept.
  CHECK((*table.Find("p"))->Pause(true).ok());
  CHECK(journal.Load()[0].paused);
}

TEST_CASE("who enters a deleted pipeline takes no split group from another one of its name") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 40);
  PipelineJournal journal(*StateFolder::Open(folder / "state"));
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults(), &journal);
  const std::shared_ptr<Pipeline> deleted = *table.Create(Spec(folder, "p"));
  REQUIRE(table.Delete("p").ok());
  const std::shared_ptr<Pipeline> pipeline = *table.Create(Spec(folder, "p"));
  Newcomer newcomer;
  newcomer.spec.mode = ring::GroupMode::kSplit;
  newcomer.spec.group = "workers";
  REQUIRE(pipeline->Attach(newcomer).ok());
  newcomer.spec.group = "late";
  deleted->Attach(newcomer).IgnoreError();
  const auto groups = journal.SplitFilesOf("p", /*empty=*/false)->Load();
  CHECK(groups.size() == 1);
  CHECK(groups.contains("workers"));
}

TEST_CASE("a pipeline that cannot be deleted is kept on") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 40);
  PipelineOptions options;
  int written = 0;
  options.write_state = [&written](const KeptState&) {
    ++written;
    return absl::OkStatus();
  };
  const auto pipeline = *Pipeline::Create(Spec(folder, "p"), options, LocalFileSystem());
  pipeline->Retire(true);
  CHECK(absl::IsNotFound(pipeline->Pause(true)));
  pipeline->Retire(false);
  CHECK(pipeline->Pause(true).ok());
  CHECK(written == 1);
}

TEST_CASE("the policies of a pipeline's groups have a limit") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 40);
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults());
  const auto pipeline = *table.Create(Spec(folder, "p"));
  for (int i = 0; i < 64; ++i) {
    REQUIRE(pipeline->SetSlowPolicy(absl::StrCat("g", i), ring::SlowPolicy::kSkip, 5).ok());
  }
  CHECK(absl::IsResourceExhausted(pipeline->SetSlowPolicy("more", ring::SlowPolicy::kSkip, 5)));
  CHECK(pipeline->SetSlowPolicy("g7", ring::SlowPolicy::kBlock, 5).ok());
}

TEST_CASE("who catches up is counted by itself, and its workers are watched") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 400);
  PipelineTable table(LocalFileSystem(), v1::WorkerDefaults());
  REQUIRE(table.Create(Spec(folder, "p", "stage { repeat {} }")).ok());
  const auto loop = *EventLoop::Create(), stands = *EventLoop::Create();
  // Nobody but the test has it look.
  Monitor monitor(*stands, table, 1);
  Sessions sessions(*loop, table, 16);
  test::Trainer healthy(sessions, 0, {}, "p");
  std::optional<test::Trainer> behind;
  const auto pipeline = *table.Find("p");
  const test::Running running(*loop);
  healthy.Enter();
  for (int step = 0; step < 200; ++step) healthy.TakeStep();
  CHECK(pipeline->Pulses().size() == 1);
  ring::ConsumerPosition beginning;
  beginning.step = 0;
  OnLoop(*loop, [&] { behind.emplace(sessions, 0, beginning, "p"); });
  behind->Enter();
  CHECK(pipeline->Pulses().size() == 2);

  int64_t now_ns = 1'000'000'000'000;
  for (int look = 0; look < 30; ++look) {
    healthy.TakeStep();
    monitor.LookAtAll(now_ns += 250'000'000);
  }
  const v1::PipelineStats stats = monitor.Stats(*pipeline);
  REQUIRE(stats.consumers_size() == 2);
  CHECK(stats.consumers(0).id() == stats.consumers(1).id());
  CHECK_FALSE(stats.consumers(0).replay());
  CHECK(stats.consumers(0).steps_per_s() > 0);
  CHECK(stats.consumers(1).replay());
  CHECK(stats.consumers(1).steps_per_s() == 0);
}

TEST_CASE("an autotuned pipeline may have the workers that were the default when it was created") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "p", 0, 40);
  v1::WorkerDefaults defaults;
  defaults.set_workers(1);
  defaults.set_autotune(true);
  PipelineTable table(LocalFileSystem(), defaults);
  const auto loop = *EventLoop::Create();
  Monitor monitor(*loop, table, 4);
  const auto tuner = *Tuner::Create(table, monitor, 4);
  defaults.set_workers(3);
  table.SetDefaults(defaults);
  v1::PipelineSpec spec = Spec(folder, "p", "stage { repeat {} }");
  spec.clear_workers();
  const auto pipeline = *table.Create(spec);
  int64_t now_ns = 1'000'000'000'000;
  Until([&] {
    monitor.LookAtAll(now_ns += 250'000'000);
    return pipeline->Stats().autotune().most_workers() > 0;
  });
  CHECK(pipeline->Stats().autotune().most_workers() == 3);
}

}  // namespace
}  // namespace penstock
