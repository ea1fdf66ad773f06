// Where those begin who attach, who is served by itself, and who is refused.

#include <unistd.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "server/service/state/split_file.h"
#include "server/service/state/state_folder.h"
#include "tests/service/owned_pipeline.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::kGuest;
using test::kOwner;
using test::Owned;
using test::Reading;

PipelineOptions Paused() {
  PipelineOptions options;
  options.state.paused = true;
  return options;
}

// Of steps `begin` to `end` of a run that nobody has changed, each `ahead` steps further on.
std::vector<int64_t> Places(uint64_t begin, uint64_t end, uint64_t ahead = 0) {
  std::vector<int64_t> places;
  for (uint64_t step = begin; step < end; ++step)
    places.push_back(static_cast<int64_t>((step + ahead) % 4));
  return places;
}

TEST_CASE("neither the daemon's own user nor who may control a pipeline is a guest") {
  {
    Owned pipeline;
    const auto daemons = pipeline->Attach(pipeline.At(geteuid(), 50));
    REQUIRE(daemons.ok());
    CHECK_FALSE(daemons->is_replay);
  }
  Owned pipeline;
  Newcomer controls = pipeline.At(kGuest, 50);
  controls.spec.may_send_away = true;
  const auto attached = pipeline->Attach(controls);
  REQUIRE(attached.ok());
  CHECK_FALSE(attached->is_replay);
}

TEST_CASE("a guest's worker of a split group takes what all take, whatever its cursor says") {
  Owned pipeline;
  Newcomer worker = pipeline.At(kGuest, 50);
  worker.spec.mode = ring::GroupMode::kSplit;
  worker.spec.group = "workers";
  const auto attached = pipeline->Attach(worker);
  INFO(attached.status().ToString());
  REQUIRE(attached.ok());
  CHECK_FALSE(attached->is_replay);
  CHECK(attached->stream->first_step() == 0);
}

TEST_CASE("a guest at the step that comes next reads what all read") {
  Owned pipeline;
  test::Until([&] { return pipeline->Stats().steps() == 4; });
  const auto guest = pipeline->Attach(pipeline.At(kGuest, 4));
  REQUIRE(guest.ok());
  CHECK(guest->handle.start_step == 4);
  CHECK_FALSE(guest->is_replay);
}

TEST_CASE("a position whose step and cursor disagree is refused") {
  Owned pipeline;
  Newcomer newcomer = pipeline.At(kOwner, 5);
  newcomer.position.step = 6;
  const absl::Status refused = pipeline->Attach(newcomer).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(refused.message() == "the step is not that of the cursor: 6 and 5");
}

TEST_CASE("a step that has gone, or that nobody has made yet, is not made without its cursor") {
  Newcomer newcomer = Owned::Anywhere(kOwner);
  SECTION("where the stream would move") {
    Owned pipeline;
    newcomer.position.step = 50;
    const absl::Status refused = pipeline->Attach(newcomer).status();
    CHECK(absl::IsOutOfRange(refused));
    CHECK(absl::StrContains(refused.message(), "step 50 has gone, and without its cursor"));
    // Whom nobody could serve has moved nothing.
    CHECK(pipeline.WhereItIsLeft() == 0);
  }
  SECTION("where it would be served by itself") {
    Owned pipeline;
    REQUIRE(pipeline->Attach(pipeline.At(kOwner, 50)).ok());
    newcomer.position.step = 2;
    const absl::Status refused = pipeline->Attach(newcomer).status();
    CHECK(absl::IsOutOfRange(refused));
    CHECK(absl::StrContains(refused.message(), "step 2 has gone, and without its cursor"));
  }
}

TEST_CASE("who wants a device's memory of a ring that has none is refused") {
  Owned pipeline;
  Newcomer newcomer = Owned::Anywhere(geteuid());
  newcomer.spec.on_device = true;
  const absl::Status refused = pipeline->Attach(newcomer).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "the ring of pipeline p is not on a device"));
}

TEST_CASE("who catches up has a small ring, and the name that it came with") {
  Owned pipeline;
  const auto moves = pipeline->Attach(pipeline.At(kOwner, 50));
  REQUIRE(moves.ok());
  Newcomer trainer = pipeline.At(kOwner, 2);
  trainer.spec.name = "trainer";
  const auto behind = pipeline->Attach(trainer);
  REQUIRE(behind.ok());
  REQUIRE(behind->is_replay);
  CHECK(behind->stream->writer().slots() == 3);
  CHECK(behind->stream->writer().Consumers().at(0).name == "trainer");
  // The name is taken as it would be in the ring that all share.
  Newcomer other = pipeline.At(kOwner, 3);
  other.spec.name = "trainer";
  other.pid = 99;
  CHECK(absl::IsAlreadyExists(pipeline->Attach(other).status()));
  CHECK_FALSE(behind->stream->writer().Consumers().at(0).detached);
  other.spec.take_over = true;
  const auto took = pipeline->Attach(other);
  REQUIRE(took.ok());
  CHECK(behind->stream->writer().Consumers().at(0).detached);
  // Who was sent away has its name no more.
  REQUIRE(pipeline->DetachConsumer(took->handle.id, 99).ok());
  Newcomer third = pipeline.At(kOwner, 4);
  third.spec.name = "trainer";
  CHECK(pipeline->Attach(third).ok());
}

TEST_CASE("of consumers that have one number, the process says which is sent away") {
  Owned pipeline;
  Newcomer newcomer = pipeline.At(kOwner, 50);
  newcomer.pid = 11;
  const auto shared = pipeline->Attach(newcomer);
  newcomer = pipeline.At(kOwner, 2);
  newcomer.pid = 12;
  const auto behind = pipeline->Attach(newcomer);
  REQUIRE(shared.ok());
  REQUIRE(behind.ok());
  const uint32_t id = shared->handle.id;
  REQUIRE(behind->handle.id == id);
  const absl::Status refused = pipeline->DetachConsumer(id, 0);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "name the process too"));
  CHECK(absl::IsNotFound(pipeline->DetachConsumer(id, 13)));
  REQUIRE(pipeline->DetachConsumer(id, 12).ok());
  CHECK(behind->stream->writer().Consumers().at(0).evicted);
  CHECK_FALSE(shared->stream->writer().Consumers().at(0).evicted);
}

TEST_CASE("guests that catch up leave places to other users, and are told who can help") {
  Owned pipeline;
  const Newcomer first = pipeline.At(kGuest, 50);
  std::vector<Attached> replays;
  for (int i = 0; i < 7; ++i) {
    Newcomer newcomer = first;
    newcomer.spec.identity += static_cast<uint64_t>(100 + i);
    const auto attached = pipeline->Attach(newcomer);
    REQUIRE(attached.ok());
    REQUIRE(attached->is_replay);
    replays.push_back(*attached);
  }
  Newcomer newcomer = first;
  newcomer.spec.identity = 200;
  const absl::Status refused = pipeline->Attach(newcomer).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(absl::StrContains(refused.message(), "who may control the pipeline can move it there"));
  newcomer.uid = newcomer.spec.uid = kGuest + 1;
  CHECK(pipeline->Attach(newcomer).ok());
}

TEST_CASE("streams that are still ending have a limit too") {
  Owned pipeline;
  REQUIRE(pipeline->Attach(pipeline.At(kOwner, 50)).ok());
  Newcomer newcomer = pipeline.At(kOwner, 2);
  std::vector<Attached> ending;
  absl::Status refused;
  for (int i = 0; i < 40 && refused.ok(); ++i) {
    newcomer.spec.identity = static_cast<uint64_t>(100 + i);
    const auto attached = pipeline->Attach(newcomer);
    refused = attached.status();
    if (!refused.ok()) break;
    attached->stream->writer().Detach(attached->handle.id);
    ending.push_back(*attached);
  }
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ending.size() == 32);
}

TEST_CASE("what somebody has had elsewhere is not changed in front of him") {
  // The first step that a change of batches may hold from.
  const auto changed_from = [](Owned& pipeline) {
    RequestedChange requested;
    requested.change.set_skip_steps(1);
    const auto change = pipeline->Update(requested);
    REQUIRE(change.ok());
    return change->step();
  };
  SECTION("who attaches") {
    Owned pipeline(0, false, Paused());
    const auto first = pipeline->Attach(Owned::Anywhere(kOwner));
    const auto ahead = pipeline->Attach(pipeline.At(kOwner, 50));
    REQUIRE(first.ok());
    REQUIRE(ahead.ok());
    CHECK(ahead->handle.start_step == 50);
    CHECK(changed_from(pipeline) == 50);
  }
  SECTION("who comes back") {
    Owned pipeline(0, /*returns=*/true, Paused());
    Newcomer rank = pipeline.At(kOwner, 2);
    rank.spec.mode = ring::GroupMode::kRank;
    rank.spec.group = "ranks";
    const auto back = pipeline->StartAgain({rank, pipeline.At(kOwner, 50)});
    REQUIRE(back[0].ok());
    REQUIRE(back[1].ok());
    CHECK(back[0]->stream->first_step() == 2);
    CHECK(changed_from(pipeline) == 50);
  }
}

TEST_CASE("after a restart the stream begins behind those who are served by themselves") {
  SECTION("one who is far behind the others") {
    Owned pipeline(/*first_free=*/60, /*returns=*/true);
    const auto back = pipeline->StartAgain({pipeline.At(kOwner, 2), pipeline.At(kOwner, 50)});
    REQUIRE(back[0].ok());
    REQUIRE(back[1].ok());
    CHECK(back[0]->is_replay);
    CHECK(back[0]->handle.start_step == 2);
    CHECK_FALSE(back[1]->is_replay);
    CHECK(back[1]->stream->first_step() == 50);
  }
  SECTION("but for ranks") {
    Owned pipeline(/*first_free=*/60, /*returns=*/true);
    Newcomer rank = pipeline.At(kOwner, 2);
    rank.spec.mode = ring::GroupMode::kRank;
    rank.spec.group = "ranks";
    const auto back = pipeline->StartAgain({rank, pipeline.At(kOwner, 50)});
    REQUIRE(back[0].ok());
    CHECK_FALSE(back[0]->is_replay);
    CHECK(back[0]->stream->first_step() == 2);
  }
  SECTION("of guests among themselves") {
    Owned pipeline(/*first_free=*/60, /*returns=*/true);
    const auto back = pipeline->StartAgain({pipeline.At(kGuest, 2), pipeline.At(kGuest, 50)});
    REQUIRE(back[0].ok());
    REQUIRE(back[1].ok());
    CHECK(back[0]->is_replay);
    CHECK(back[1]->stream->first_step() == 50);
  }
}

TEST_CASE("a guest that comes back alone counts where somebody can have been") {
  // 0: nothing is known of it.
  for (const uint64_t first_free : {0, 50}) {
    INFO("first free " << first_free);
    Owned pipeline(first_free, /*returns=*/true);
    const auto back = pipeline->StartAgain({pipeline.At(kGuest, 50)});
    REQUIRE(back[0].ok());
    CHECK_FALSE(back[0]->is_replay);
    CHECK(back[0]->stream->first_step() == 50);
  }
  // Its steps are the pipeline's up to there.
  Owned pipeline(/*first_free=*/50, /*returns=*/true);
  const auto back = pipeline->StartAgain({pipeline.At(kGuest, 50), pipeline.At(kOwner, 2)});
  REQUIRE(back[0].ok());
  CHECK(back[0]->is_replay);
  CHECK_FALSE(back[0]->stream->is_apart());
}

TEST_CASE("who comes to a pipeline that could not come back is told why") {
  PipelineOptions options;
  options.memory = std::make_shared<MemoryBudget>();
  v1::MemoryLimits limits;
  limits.set_max_bytes(1);
  options.memory->SetLimits(limits);
  Owned pipeline(0, /*returns=*/true, options);
  pipeline->StartAgain({});
  CHECK(absl::IsResourceExhausted(pipeline->Attach(Owned::Anywhere(kOwner)).status()));
}

TEST_CASE("a group of ranks of which nobody has come back is complete no more") {
  Owned pipeline(0, false, Paused());
  Newcomer rank = Owned::Anywhere(kOwner);
  rank.spec.mode = ring::GroupMode::kRank;
  rank.spec.group = "ranks";
  REQUIRE(pipeline->Attach(rank).ok());
  REQUIRE(pipeline->complete_groups() == std::set<std::string>{"ranks"});
  PipelineOptions options;
  options.state.complete_groups = pipeline->complete_groups();
  Owned successor(0, /*returns=*/true, options);
  successor->StartAgain({});
  CHECK(successor->complete_groups() == std::set<std::string>());
}

// Two streams of one pipeline that both have its steps: the shared one at step 2, and one further
// on.
struct TwoStreams {
  TwoStreams() {
    const auto back = pipeline->StartAgain({pipeline.At(kGuest, 50), pipeline.At(kOwner, 2)});
    REQUIRE(back[0].ok());
    REQUIRE(back[1].ok());
    REQUIRE(back[0]->is_replay);
    ahead = *back[0];
    shared = *back[1];
  }
  Owned pipeline{/*first_free=*/60, /*returns=*/true};
  Attached ahead, shared;
};

TEST_CASE("a change and its withdrawal reach those who catch up") {
  TwoStreams two;
  RequestedChange requested;
  requested.change.set_skip_steps(3);
  requested.step = 70;
  REQUIRE(two.pipeline->Update(requested).ok());
  requested.step = 80;
  REQUIRE(two.pipeline->Update(requested).ok());
  RequestedChange withdrawal;
  withdrawal.withdraw = true;
  REQUIRE(two.pipeline->Update(withdrawal).ok());
  for (const Attached* attached : {&two.ahead, &two.shared}) {
    Reading reading(*attached);
    const uint64_t from = attached->handle.start_step;
    CHECK(reading.Take(70 - from) == Places(from, 70));
    CHECK(reading.Take(20) == Places(70, 90, 3));
  }
}

TEST_CASE("the next epoch is that of who is furthest on") {
  TwoStreams two;
  Reading reading(two.ahead);
  CHECK(reading.Take(14) == Places(50, 64));
  test::Until([&] { return two.ahead.stream->writer().published() == 67; });
  RequestedChange requested;
  requested.at_next_epoch = true;
  *requested.change.mutable_stage() = two.pipeline->LastSpec().stage();
  requested.change.mutable_stage(2)->mutable_batch()->set_batch_size(2);
  const auto change = two.pipeline->Update(requested);
  INFO(change.status().ToString());
  REQUIRE(change.ok());
  // It has begun epoch 16, and perhaps the one behind it; the shared stream has begun none but 1.
  CHECK(change->epoch() >= 17);
}

TEST_CASE("who waits is counted by stream, as each numbers its consumers anew") {
  TwoStreams two;
  const std::vector<WaitLooks> waits = two.pipeline->Waits();
  REQUIRE(waits.size() == 2);
  CHECK(waits[0].stream != waits[1].stream);
}

TEST_CASE("a group is ended in all streams that it reads") {
  TwoStreams two;
  REQUIRE(two.pipeline->DropGroup("default").ok());
  CHECK(two.ahead.stream->writer().Consumers().at(0).evicted);
  CHECK(two.shared.stream->writer().Consumers().at(0).evicted);
}

TEST_CASE("users other than the owner leave places of the ring to each other") {
  Owned pipeline(0, false, Paused());
  absl::Status refused;
  int attached = 0;
  while (refused.ok()) {
    refused = pipeline->Attach(Owned::Anywhere(kGuest)).status();
    if (refused.ok()) ++attached;
  }
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(attached == 56);
  CHECK(pipeline->Attach(Owned::Anywhere(kGuest + 1)).ok());
  CHECK(pipeline->Attach(Owned::Anywhere(kOwner)).ok());
}

TEST_CASE("a group that was told something before it came is one that was told") {
  Owned pipeline(0, false, Paused());
  REQUIRE(pipeline->SetSlowPolicy("ranks", ring::SlowPolicy::kDetach, 5).ok());
  for (const char* group : {"ranks", "others"}) {
    Newcomer rank = Owned::Anywhere(kOwner);
    rank.spec.mode = ring::GroupMode::kRank;
    rank.spec.group = group;
    REQUIRE(pipeline->Attach(rank).ok());
  }
  const auto attached = pipeline->Attach(Owned::Anywhere(kOwner));
  REQUIRE(attached.ok());
  const auto groups = attached->stream->writer().Groups();
  REQUIRE(groups.size() == 2);
  for (const ring::GroupStats& group : groups) {
    INFO(group.name);
    CHECK(group.is_told == (group.name == "ranks"));
  }
}

// A pipeline that remembers its split groups in files, as an earlier daemon may have done.
struct Remembering {
  explicit Remembering(bool returns, PipelineOptions options = {}) {
    options.split_files = std::make_shared<SplitFiles>(*state, "p");
    pipeline = std::make_unique<Owned>(0, returns, std::move(options));
  }
  Owned& operator*() { return *pipeline; }
  std::string CursorOf(uint64_t step) { return pipeline->At(kOwner, step).position.cursor; }
  // Of an earlier daemon: the group "workers" at step `next`, of which somebody held `held`.
  void LeaveGroup(uint64_t next, std::optional<uint64_t> held = std::nullopt) {
    SplitFiles earlier(*state, "p");
    earlier.Begin("workers", false, {kOwner, false}, held.value_or(next),
                  CursorOf(held.value_or(next)));
    if (!held) return;
    earlier.Set("workers", {*held, 7, false, CursorOf(*held)});
    earlier.SetNext("workers", next, CursorOf(next));
  }

  const test::ScratchFolder folder;
  const std::unique_ptr<StateFolder> state = *StateFolder::Open(folder / "state");
  std::unique_ptr<Owned> pipeline;
};

TEST_CASE("after a restart the stream begins with what a split group has not done") {
  Remembering remembering(/*returns=*/true, Paused());
  Owned& pipeline = *remembering;
  remembering.LeaveGroup(/*next=*/20, /*held=*/5);
  const auto back = pipeline->StartAgain({pipeline.At(kOwner, 8)});
  REQUIRE(back[0].ok());
  CHECK(back[0]->stream->first_step() == 5);
  CHECK(back[0]->handle.start_step == 8);
  // Up to its next step the group has had all.
  RequestedChange requested;
  requested.change.set_skip_steps(1);
  const auto change = pipeline->Update(requested);
  REQUIRE(change.ok());
  CHECK(change->step() == 20);
}

TEST_CASE("a group of before a restart is not lost to who comes alone") {
  Remembering remembering(/*returns=*/true);
  Owned& pipeline = *remembering;
  remembering.LeaveGroup(/*next=*/5);
  pipeline->StartAgain({});
  const auto attached = pipeline->Attach(pipeline.At(kOwner, 50));
  INFO(attached.status().ToString());
  REQUIRE(attached.ok());
  CHECK(attached->stream->first_step() == 5);
  const v1::ListGroupsResponse groups = pipeline->Groups();
  REQUIRE(groups.groups_size() == 2);
  CHECK(groups.groups(1).name() == "workers");
}

}  // namespace
}  // namespace penstock
