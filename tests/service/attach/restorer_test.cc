// Pipelines of the daemon before: those whose files cannot be read, or hang, hold up nobody else.
#include "server/service/attach/restorer.h"

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>

#include "absl/strings/match.h"
#include "tests/service/counting.h"
#include "tests/service/trainer.h"
#include "tests/support/catch.h"
#include "tests/support/hanging_files.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

using test::Until;

v1::PipelineSpec Spec(const test::ScratchFolder& folder, const std::string& name) {
  return test::CountingSpec(folder / name, name, "stage { repeat {} }");
}

// What a daemon had, whose files of the pipeline "hangs" do so now.
class Returned {
 public:
  Returned()
      : files_([this](const std::string& path, uint64_t) {
          return hangs_ && absl::EndsWith(path, "hangs");
        }) {
    LeaveBehind();
    journal_.emplace(*StateFolder::Open(folder_ / "state"));
    table_.emplace(files_, Defaults(), &*journal_);
    loop_ = *EventLoop::Create();
    sessions_.emplace(*loop_, *table_, 16, &*journal_);
    restorer_.emplace(*loop_, *table_, *sessions_, /*first_delay=*/absl::Milliseconds(10));
  }
  ~Returned() { files_.LetGo(); }

  void Lose() { std::filesystem::rename(folder_ / "lost", folder_ / "elsewhere"); }
  void FindAgain() { std::filesystem::rename(folder_ / "elsewhere", folder_ / "lost"); }
  void LetHang() { hangs_ = true; }
  test::HangingFiles& files() { return files_; }
  PipelineTable& table() { return *table_; }
  Sessions& sessions() { return *sessions_; }
  EventLoop& loop() { return *loop_; }
  // Not longer than until all that can be read is.
  void Start() {
    REQUIRE(restorer_->Start(hangs_ ? absl::Milliseconds(200) : absl::Minutes(10)).ok());
  }
  v1::PipelineSpec NewSpec(const std::string& name) const { return Spec(folder_, name); }

 private:
  static v1::WorkerDefaults Defaults() {
    v1::WorkerDefaults defaults;
    defaults.set_workers(1);
    return defaults;
  }

  // What an earlier daemon had.
  void LeaveBehind() {
    PipelineJournal journal(*StateFolder::Open(folder_ / "state"));
    PipelineTable table(LocalFileSystem(), Defaults(), &journal);
    for (const char* name : {"hangs", "lost", "sound"}) {
      test::WriteShard(folder_ / name, 0, 40);
      REQUIRE(table.Create(Spec(folder_, name)).ok());
    }
  }

  const test::ScratchFolder folder_;
  std::atomic<bool> hangs_ = false;
  test::HangingFiles files_;
  std::optional<PipelineJournal> journal_;
  std::optional<PipelineTable> table_;
  std::unique_ptr<EventLoop> loop_;
  std::optional<Sessions> sessions_;
  std::optional<Restorer> restorer_;  // goes first
};

TEST_CASE("fault 28: a disk that hangs at the daemon's start holds up its own pipeline only") {
  Returned daemon;
  daemon.LetHang();
  daemon.Start();
  test::Trainer waits(daemon.sessions(), 0, {}, "hangs");
  test::Trainer reads(daemon.sessions(), 0, {}, "sound");
  const test::Running running(daemon.loop());
  reads.Enter();
  for (int step = 0; step < 30; ++step) reads.TakeStep();

  const auto found = daemon.table().Find("hangs");
  CHECK(absl::IsUnavailable(found.status()));
  CHECK(std::string(found.status().message()) ==
        "pipeline hangs has not come back yet since penstockd was started again: its files are "
        "being read");
  CHECK(daemon.files().hanging() == 1);
  daemon.files().LetGo();
  waits.Enter();
  for (int step = 0; step < 30; ++step) waits.TakeStep();
  CHECK(daemon.table().Returning().empty());
}

TEST_CASE("fault 23: a pipeline whose files are not there yet comes back when they are") {
  Returned daemon;
  daemon.Lose();
  daemon.Start();
  test::Trainer refused(daemon.sessions(), 0, {}, "lost");
  const test::Running running(daemon.loop());
  const ring::Status status = refused.GetRefused();
  CHECK(status.code == ring::Code::kUnavailable);
  CHECK(absl::StrContains(status.message, "pipeline lost has not come back yet: "));
  CHECK(absl::StrContains(status.message, "No such file"));
  CHECK(absl::IsNotFound(daemon.table().Returning().at("lost")));
  CHECK(std::string(daemon.table().Create(daemon.NewSpec("lost")).status().message()) ==
        "a pipeline \"lost\" exists, though it has not come back yet; delete it (penstock delete "
        "lost) "
        "or give this one another --name");
  daemon.FindAgain();
  Until([&] { return daemon.table().Find("lost").ok(); });
  CHECK(daemon.table().Returning().empty());
}

TEST_CASE("a pipeline that is deleted while it comes back does not come") {
  Returned daemon;
  daemon.LetHang();
  daemon.Start();
  daemon.sessions().RestAfter([] { return absl::ZeroDuration(); });
  test::Trainer waits(daemon.sessions(), 0, {}, "hangs");
  REQUIRE(daemon.table().Delete("hangs").ok());
  const test::Running running(daemon.loop());
  CHECK(waits.GetRefused().code == ring::Code::kNotFound);
  // Another one takes its name, and what the read brings does not take it from that.
  REQUIRE(daemon.table().Find("hangs").status().code() == absl::StatusCode::kNotFound);
  std::atomic<bool> created = false;
  std::thread creates([&] { created = daemon.table().Create(daemon.NewSpec("hangs")).ok(); });
  Until([&] { return daemon.files().hanging() == 2; });
  daemon.files().LetGo();
  creates.join();
  REQUIRE(created);
  Until([&] { return daemon.files().hanging() == 0; });
  const auto found = daemon.table().Find("hangs");
  REQUIRE(found.ok());
  CHECK((*found)->Stats().state() == v1::PIPELINE_STATE_RUNNING);
}

}  // namespace
}  // namespace penstock
