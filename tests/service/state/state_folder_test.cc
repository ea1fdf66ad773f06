// The daemon's memory: what is written is read back, what is not whole is noticed, and what was
// removed is made again (fault 50).
#include "server/service/state/state_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "server/service/daemon/supervisor.h"
#include "server/service/state/pipeline_journal.h"
#include "server/service/state/split_file.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

TEST_CASE("a state file is read back whole, or it is an error") {
  const test::ScratchFolder scratch;
  const auto folder = StateFolder::Open(scratch / "state");
  REQUIRE(folder.ok());
  CHECK((*folder)->Read("a.pipeline").status().code() == absl::StatusCode::kNotFound);
  REQUIRE((*folder)->Write("a.pipeline", "first", StateFolder::Durability::kPowerLoss).ok());
  REQUIRE((*folder)->Write("a.pipeline", "second", StateFolder::Durability::kCrash).ok());
  CHECK(*(*folder)->Read("a.pipeline") == "second");
  CHECK((*folder)->List(".pipeline") == std::vector<std::string>{"a.pipeline"});

  std::string bytes;
  std::getline(std::ifstream(scratch / "state/a.pipeline", std::ios::binary), bytes, '\xff');
  for (size_t size = 0; size < bytes.size(); ++size) {
    std::ofstream(scratch / "state/a.pipeline", std::ios::binary) << bytes.substr(0, size);
    CHECK((*folder)->Read("a.pipeline").status().code() == absl::StatusCode::kDataLoss);
  }
  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string flipped = bytes;
    flipped[i] = static_cast<char>(flipped[i] ^ 0x20);
    std::ofstream(scratch / "state/a.pipeline", std::ios::binary) << flipped;
    CHECK((*folder)->Read("a.pipeline").status().code() == absl::StatusCode::kDataLoss);
  }
  (*folder)->SetAside("a.pipeline");
  CHECK((*folder)->List(".pipeline").empty());
}

TEST_CASE("a state folder that somebody has removed is made again, with its lock and its files") {
  const test::ScratchFolder scratch;
  const std::string path = scratch / "above/state";
  const auto folder = StateFolder::Open(path);
  REQUIRE(folder.ok());
  const auto write = [&](const std::string& name, const std::string& text) {
    REQUIRE((*folder)->Write(name, text, StateFolder::Durability::kPowerLoss).ok());
  };
  write("a.pipeline", "of a");
  write("a.pipeline", "of a, changed");
  write("b.pipeline", "of b");
  REQUIRE((*folder)->Remove("b.pipeline").ok());
  CHECK((*folder)->IsInPlace());
  std::filesystem::remove_all(scratch / "above");
  CHECK_FALSE((*folder)->IsInPlace());
  REQUIRE((*folder)->PutBack().ok());
  CHECK((*folder)->IsInPlace());
  CHECK(*(*folder)->Read("a.pipeline") == "of a, changed");
  CHECK((*folder)->List(".pipeline") == std::vector<std::string>{"a.pipeline"});
  write("c.pipeline", "of c");
  // The lock is held as before.
  CHECK(StateFolder::Open(path).status().code() == absl::StatusCode::kFailedPrecondition);
  // Another daemon that has taken its place keeps it.
  std::filesystem::remove_all(path);
  const auto other = StateFolder::Open(path);
  REQUIRE(other.ok());
  CHECK_FALSE((*folder)->IsInPlace());
  CHECK((*folder)->PutBack().code() == absl::StatusCode::kFailedPrecondition);
  CHECK((*other)->List(".pipeline").empty());
}

TEST_CASE("what is no regular file in a state folder is an error, and nobody waits for it") {
  const test::ScratchFolder scratch;
  const auto folder = StateFolder::Open(scratch / "state");
  REQUIRE(folder.ok());
  REQUIRE(mkfifo((*folder)->PathOf("p.pipeline").c_str(), 0600) == 0);
  REQUIRE(mkdir((*folder)->PathOf("q.pipeline").c_str(), 0700) == 0);
  for (const char* name : {"p.pipeline", "q.pipeline"}) {
    const auto read = (*folder)->Read(name);
    CHECK(read.status().code() == absl::StatusCode::kDataLoss);
    CHECK_THAT(std::string(read.status().message()), Catch::Matchers::Contains("no regular file"));
  }
  REQUIRE(mkfifo((*folder)->PathOf("r.pipeline.new").c_str(), 0600) == 0);
  CHECK_FALSE((*folder)->Write("r.pipeline", "text", StateFolder::Durability::kCrash).ok());
}

TEST_CASE("one daemon has a state folder") {
  const test::ScratchFolder scratch;
  auto first = StateFolder::Open(scratch / "state");
  REQUIRE(first.ok());
  CHECK(StateFolder::Open(scratch / "state").status().code() ==
        absl::StatusCode::kFailedPrecondition);
  first->reset();
  CHECK(StateFolder::Open(scratch / "state").ok());
}

TEST_CASE("fault 49: the journal knows pipelines, and consumers that live") {
  const test::ScratchFolder scratch;
  const PipelineJournal journal(*StateFolder::Open(scratch / "state"));
  v1::PipelineSpec spec;
  spec.set_name("chess");
  REQUIRE(journal.Put({spec, "cursor", ChangedWork::kAllow, {}}).ok());
  const auto entries = journal.Load();
  REQUIRE(entries.size() == 1);
  CHECK(entries[0].spec.name() == "chess");
  CHECK(entries[0].cursor == "cursor");
  CHECK(entries[0].changed_work == ChangedWork::kAllow);
  CHECK_FALSE(entries[0].paused);
  PipelineJournal::Entry steered = {spec, "", ChangedWork::kRefuse, {}};
  steered.history.emplace_back().set_workers(3);
  steered.paused = true;
  steered.slow_policies["g"] = {ring::SlowPolicy::kSkip, 77};
  steered.complete_groups = {"g", "h"};
  v1::StageMeaning* const meaning = steered.meanings.emplace_back().add_stage();
  meaning->set_place(3);
  meaning->set_number(2);
  steered.meanings.emplace_back();
  steered.world = {8, 3};
  REQUIRE(journal.Put(steered).ok());
  const auto again = journal.Load();
  REQUIRE(again.size() == 1);
  CHECK(again[0].changed_work == ChangedWork::kRefuse);
  REQUIRE(again[0].history.size() == 1);
  CHECK(again[0].history[0].workers() == 3);
  CHECK(again[0].paused);
  CHECK(again[0].slow_policies == steered.slow_policies);
  CHECK(again[0].complete_groups == steered.complete_groups);
  CHECK(entries[0].world.is_alone());
  CHECK(again[0].world == steered.world);
  CHECK(entries[0].meanings.empty());
  REQUIRE(again[0].meanings.size() == 2);
  REQUIRE(again[0].meanings[0].stage_size() == 1);
  CHECK(again[0].meanings[0].stage(0).place() == 3);
  CHECK(again[0].meanings[0].stage(0).number() == 2);
  CHECK(again[0].meanings[1].stage().empty());
  // A file of an earlier release does not tell, which is not the same as that there are none.
  CHECK_FALSE(entries[0].complete_groups);
  steered.complete_groups->clear();
  REQUIRE(journal.Put(steered).ok());
  CHECK(journal.Load()[0].complete_groups.has_value());
  journal.PutConsumers("chess", {{11, getpid()}, {12, 0}, {13, 0x7ffffff0}});
  const auto consumers = journal.LoadConsumers("chess");
  REQUIRE(consumers.size() == 2);  // the third one's process does not exist
  CHECK(consumers[0].identity == 11);
  CHECK(consumers[1].identity == 12);
  // Of a pipeline that is not kept there is nothing to come back to.
  journal.PutConsumers("temporary", {{11, getpid()}});
  CHECK(journal.LoadConsumers("temporary").empty());
  std::ofstream(scratch / "state/torn.pipeline") << "PNSTATE1";
  CHECK(journal.Load().size() == 1);
  // What is of no use is no obstacle, and is not lost.
  CHECK_FALSE(std::filesystem::exists(scratch / "state/torn.pipeline"));
  journal.PutOwner("chess", 1234);
  CHECK(journal.LoadOwner("chess") == 1234);
  journal.SplitFilesOf("chess", false)->Begin("workers", false, {}, 3, "c");
  CHECK(journal.SplitFilesOf("chess", false)->Load().size() == 1);
  REQUIRE(journal.Remove("chess").ok());
  CHECK(journal.Load().empty());
  CHECK(journal.LoadOwner("chess") == static_cast<uid_t>(-1));
  CHECK(journal.SplitFilesOf("chess", false)->Load().empty());
  // One that begins anew begins without what one of that name has left.
  journal.SplitFilesOf("chess", false)->Begin("workers", false, {}, 3, "c");
  CHECK(journal.SplitFilesOf("chess", true)->Load().empty());
  CHECK(journal.LoadConsumers("chess").empty());
  journal.PutConsumers("chess", {{11, getpid()}});
  CHECK(journal.LoadConsumers("chess").empty());
}

TEST_CASE("what could not be read back is not written") {
  const test::ScratchFolder scratch;
  const PipelineJournal journal(*StateFolder::Open(scratch / "state"));
  PipelineJournal::Entry entry;
  entry.spec.set_name("p");
  entry.history.emplace_back().add_stage()->set_name("caf\xe9");
  const absl::Status status = journal.Put(entry);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "name: expected text in UTF-8, found caf\\xe9"));
  entry.history[0].mutable_stage(0)->set_name(std::string(StateFolder::kMaxBytes, 'x'));
  CHECK(absl::IsResourceExhausted(journal.Put(entry)));
  CHECK(journal.Load().empty());
  entry.history.clear();
  REQUIRE(journal.Put(entry).ok());
  CHECK(journal.Load().size() == 1);
}

TEST_CASE("what cannot be read just now is not set aside") {
  const test::ScratchFolder scratch;
  const PipelineJournal journal(*StateFolder::Open(scratch / "state"));
  PipelineJournal::Entry entry;
  entry.spec.set_name("p");
  REQUIRE(journal.Put(entry).ok());
  const std::string file = scratch / "state/p.pipeline";
  std::filesystem::rename(file, scratch / "elsewhere");
  std::filesystem::create_symlink(scratch / "elsewhere", file);
  CHECK(journal.Load().empty());
  REQUIRE(std::filesystem::is_symlink(file));
  std::filesystem::rename(scratch / "elsewhere", file);
  CHECK(journal.Load().size() == 1);
}

TEST_CASE("a split group is found as it was left") {
  const test::ScratchFolder scratch;
  const auto folder = *StateFolder::Open(scratch / "state");
  {
    SplitFiles files(*folder, "p");
    files.Begin("workers", true, {1001, true}, 0, "c0");
    files.Set("workers", {0, 7, false, "c0"});
    files.SetNext("workers", 1, "c1");
    files.Set("workers", {1, 8, false, "c1"});
    files.SetNext("workers", 2, "c2");
    files.Clear("workers", 0);
    files.Set("workers", {1, 0, true, "other"});
  }
  SplitFiles files(*folder, "p");
  const auto states = files.Load();
  REQUIRE(states.size() == 1);
  const ring::SplitState& state = states.at("workers");
  CHECK(state.at_most_once);
  CHECK(state.user.uid == 1001);
  CHECK(state.user.is_guest);
  CHECK(state.next == 2);
  CHECK(state.next_cursor == "c2");
  REQUIRE(state.entries.size() == 1);
  CHECK(state.entries[0].step == 1);
  CHECK(state.entries[0].identity == 0);
  CHECK(state.entries[0].redelivered);
  CHECK(state.first() == 1);
  CHECK(state.first_cursor() == "c1");
  // The number before the last one stays beside it, whatever was being written when the daemon was
  // killed.
  std::string bytes;
  std::getline(std::ifstream(scratch / "state/p.split-0", std::ios::binary), bytes, '\xff');
  CHECK(bytes.find("c1") < bytes.find("c2"));
  CHECK(bytes.find("c2") < bytes.find("other"));
  // Another group gets a file of its own.
  files.Begin("others", false, {}, 5, "d5");
  {
    SplitFiles both(*folder, "p");
    const auto found = both.Load();
    REQUIRE(found.size() == 2);
    CHECK(found.at("workers").next == 2);
    CHECK(found.at("others").next == 5);
  }
  // One that begins again has nothing of what it held.
  files.Begin("workers", false, {}, 9, "c9");
  SplitFiles begun(*folder, "p");
  const ring::SplitState anew = begun.Load().at("workers");
  CHECK(anew.next == 9);
  CHECK(anew.next_cursor == "c9");
  CHECK(anew.entries.empty());
  CHECK_FALSE(anew.at_most_once);
  CHECK(anew.user.uid == UINT32_MAX);
  CHECK_FALSE(anew.user.is_guest);
  SplitFiles::Remove(*folder, "p");
  CHECK(SplitFiles(*folder, "p").Load().empty());
}

TEST_CASE("the split groups of a deleted pipeline are let alone until it is there again") {
  const test::ScratchFolder scratch;
  const auto folder = *StateFolder::Open(scratch / "state");
  SplitFiles files(*folder, "p"), retired(*folder, "p");
  files.Begin("workers", false, {}, 3, "c");
  retired.Retire(true);
  retired.Begin("others", false, {}, 5, "d");
  CHECK(retired.Load().empty());
  CHECK(SplitFiles(*folder, "p").Load().at("workers").next == 3);
  retired.Retire(false);
  CHECK(retired.Load().at("workers").next == 3);
}

TEST_CASE("a split group that has ended leaves its place to another one") {
  const test::ScratchFolder scratch;
  const auto folder = *StateFolder::Open(scratch / "state");
  SplitFiles files(*folder, "p");
  const auto name = [](int number) { return "workers-" + std::to_string(number); };
  // Far more than there are places for at a time.
  for (int number = 0; number < 3 * SplitFiles::kMaxGroups; ++number) {
    files.Begin(name(number), false, {}, number, "c");
    if (number > 0) files.End(name(number - 1));
  }
  const int last = 3 * SplitFiles::kMaxGroups - 1;
  {
    SplitFiles after(*folder, "p");
    const auto states = after.Load();
    REQUIRE(states.size() == 1);
    CHECK(states.at(name(last)).next == static_cast<uint64_t>(last));
  }
  for (int number = 0; number < SplitFiles::kMaxGroups - 1; ++number)
    files.Begin(name(number), false, {}, 1, "c");
  files.Begin("one too many", false, {}, 1, "c");
  files.End("one too many");
  CHECK(SplitFiles(*folder, "p").Load().size() == SplitFiles::kMaxGroups);
}

TEST_CASE("a daemon that dies again and again is started more and more slowly") {
  absl::Duration delay = absl::ZeroDuration();
  for (const int milliseconds : {100, 200, 400, 800, 1600, 3200, 5000, 5000}) {
    delay = DelayAfter(absl::Milliseconds(10), delay);
    CHECK(delay == absl::Milliseconds(milliseconds));
  }
  CHECK(DelayAfter(absl::Seconds(1), delay) == absl::ZeroDuration());
}

}  // namespace
}  // namespace penstock
