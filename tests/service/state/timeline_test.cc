// Changes that wait for their epoch, in a history.

#include "server/service/state/timeline.h"

#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "base/local_file.h"
#include "server/service/state/text_proto.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

v1::PipelineSpec Spec(int buffer_size, int seed) {
  v1::PipelineSpec spec;
  const std::string text =
      "name: 'p' stage { range { stop: 100 } } stage { shuffle { buffer_size: " +
      std::to_string(buffer_size) + " seed: " + std::to_string(seed) +
      " } } stage { batch { batch_size: 8 } } stage { repeat {} }";
  REQUIRE(ParseTextProto(text, "spec", &spec).ok());
  return spec;
}

Timeline Made() {
  const auto plan = MakePlan(Spec(10, 1), LocalFileSystem());
  REQUIRE(plan.ok());
  return Timeline(*plan, *FingerprintOf(**plan));
}

v1::Change AtEpoch(uint64_t epoch, uint64_t step) {
  v1::Change change;
  change.set_epoch(epoch);
  change.set_step(step);
  *change.mutable_stage() = Spec(20, 2).stage();
  return change;
}

v1::Change Workers(uint64_t step, int workers) {
  v1::Change change;
  change.set_step(step);
  change.set_workers(workers);
  return change;
}

absl::Status Add(Timeline& timeline, const v1::Change& change) {
  absl::StatusOr<Timeline::NextPlan> next = timeline.Prepare(change, LocalFileSystem());
  return next.ok() ? timeline.Add(change, *std::move(next)) : next.status();
}

TEST_CASE("a change holds from its step on, or from the epoch that it waits for") {
  CHECK(FromWhere(AtEpoch(4, 0)) == "epoch 4");
  CHECK(FromWhere(AtEpoch(4, 6250)) == "step 6250");
  CHECK(FromWhere(v1::Change()) == "step 0");
}

TEST_CASE("a history whose ops meant something else is not taken for this one") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, AtEpoch(4, 0)).ok());
  std::vector<v1::Meanings> kept = timeline.MeaningsOfPhases();
  REQUIRE(kept.size() == 2);
  // As a file of an earlier release has it: all are 1.
  CHECK(timeline.CheckMeaningsOfPhases({}).ok());
  CHECK(timeline.CheckMeaningsOfPhases(kept).ok());
  // Of the last phase alone.
  v1::StageMeaning* const meaning = kept[1].add_stage();
  meaning->set_place(2);
  meaning->set_number(2);
  const absl::Status status = timeline.CheckMeaningsOfPhases(kept);
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(status.message() ==
        "stage shuffle: the op shuffle means something else in this release: expected meaning 1, "
        "found 2");
}

TEST_CASE("a change that waits for its epoch stays behind all others and is no phase of any step") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, Workers(3, 2)).ok());
  REQUIRE(Add(timeline, AtEpoch(4, 0)).ok());
  CHECK(timeline.is_waiting());
  CHECK(timeline.last_step() == 3);
  REQUIRE(Add(timeline, Workers(5, 1)).ok());
  CHECK(timeline.last_step() == 5);
  CHECK(timeline.history().back().epoch() == 4);
  const std::string etag = timeline.Etag();

  CHECK(absl::IsFailedPrecondition(Add(timeline, AtEpoch(5, 0))));
  v1::Change skip;
  skip.set_step(6);
  skip.set_skip_steps(1);
  CHECK(absl::IsFailedPrecondition(Add(timeline, skip)));
  CHECK(timeline.Etag() == etag);

  const std::vector<Phase> phases = timeline.From(1'000'000);
  REQUIRE(phases.size() == 2);
  CHECK(phases[0].first_step == 0);
  CHECK(phases[1].first_step == kUnknownStep);
  CHECK(phases[1].pass == 4);

  timeline.BeginWaiting(52);
  CHECK(!timeline.is_waiting());
  CHECK(timeline.last_step() == 52);
  CHECK(timeline.Etag() != etag);
  CHECK(timeline.From(51).size() == 2);
  REQUIRE(timeline.From(52).size() == 1);
  CHECK(timeline.From(52)[0].pass == 4);
  // A later step of the same plan is in the middle of a pass.
  REQUIRE(Add(timeline,
              [&skip] {
                skip.set_step(60);
                return skip;
              }())
              .ok());
  CHECK(!timeline.last().pass);
  CHECK(timeline.last().skip_steps == 1);
}

TEST_CASE("a history is taken as it was told, whether a change of it waits or has begun") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, Workers(3, 2)).ok());
  REQUIRE(Add(timeline, AtEpoch(4, 0)).ok());
  for (const bool begun : {false, true}) {
    if (begun) timeline.BeginWaiting(52);
    Timeline again = Made();
    for (const v1::Change& change : timeline.history()) REQUIRE(Add(again, change).ok());
    CHECK(again.Etag() == timeline.Etag());
    CHECK(again.is_waiting() == !begun);
  }
}

v1::Change SkipAt(uint64_t step) {
  v1::Change change;
  change.set_step(step);
  change.set_skip_steps(2);
  return change;
}

// A history that is told again makes the same timeline.
void CheckTold(const Timeline& timeline) {
  Timeline again = Made();
  for (const v1::Change& change : timeline.history()) REQUIRE(Add(again, change).ok());
  CHECK(again.Etag() == timeline.Etag());
  CHECK(again.last_step() == timeline.last_step());
  CHECK(again.is_steered() == timeline.is_steered());
  CHECK(again.is_waiting() == timeline.is_waiting());
}

TEST_CASE("a change that waits for its epoch is withdrawn, and stays in the history") {
  Timeline timeline = Made();
  CHECK(absl::IsFailedPrecondition(timeline.Withdraw(0, 1).status()));
  REQUIRE(Add(timeline, Workers(3, 2)).ok());
  CHECK(absl::IsFailedPrecondition(timeline.Withdraw(0, 1).status()));
  v1::Change change = AtEpoch(4, 0);
  change.set_slots(7);
  REQUIRE(Add(timeline, change).ok());
  REQUIRE(Add(timeline, Workers(5, 1)).ok());
  const std::string etag = timeline.Etag();
  const absl::StatusOr<v1::Change> withdrawn = timeline.Withdraw(9, 77);
  REQUIRE(withdrawn.ok());
  CHECK(withdrawn->epoch() == 4);
  CHECK(withdrawn->withdrawn_unix_ms() == 77);
  CHECK(timeline.Etag() != etag);
  CHECK(!timeline.is_waiting());
  CHECK(!timeline.is_steered());
  // The number that came with it has held since then.
  REQUIRE(timeline.history().size() == 4);
  CHECK(timeline.history()[2].slots() == 7);
  CHECK(timeline.history()[2].stage().empty());
  CHECK(!timeline.history()[2].has_withdrawn_unix_ms());
  CHECK(timeline.history()[3].withdrawn_unix_ms() == 77);
  CHECK(!timeline.history()[3].has_slots());
  CHECK(timeline.last_step() == 9);
  CheckTold(timeline);
  CHECK(absl::IsFailedPrecondition(timeline.Withdraw(9, 78).status()));
  // What was refused while it waited may be asked for.
  REQUIRE(Add(timeline, SkipAt(12)).ok());
  REQUIRE(Add(timeline, AtEpoch(5, 0)).ok());
  CHECK(timeline.is_waiting());
  CheckTold(timeline);
  timeline.BeginWaiting(60);
  CHECK(timeline.last_step() == 60);
  CHECK(absl::IsFailedPrecondition(timeline.Withdraw(60, 79).status()));
  CheckTold(timeline);
}

TEST_CASE("a change of a step that has not been begun is withdrawn") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, SkipAt(20)).ok());
  REQUIRE(Add(timeline, SkipAt(50)).ok());
  REQUIRE(Add(timeline, Workers(50, 2)).ok());
  const absl::Status begun = timeline.Withdraw(50, 1).status();
  CHECK(absl::IsFailedPrecondition(begun));
  CHECK(begun.message() ==
        "no change waits: the last one holds from step 50 on, and every step in front of it has "
        "been begun; the next one is 50");
  REQUIRE(timeline.Withdraw(49, 1).ok());
  // Numbers that had to stand behind it do not keep others from an earlier step.
  CHECK(timeline.last_step() == 49);
  CHECK(timeline.last().first_step == 20);
  CheckTold(timeline);
  CHECK(absl::IsFailedPrecondition(timeline.Withdraw(30, 2).status()));
  REQUIRE(timeline.Withdraw(10, 3).ok());
  CHECK(!timeline.is_steered());
  CHECK(timeline.last_step() == 10);
  CheckTold(timeline);
}

TEST_CASE("what is withdrawn puts nothing in front of an earlier change") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, Workers(30, 2)).ok());
  REQUIRE(Add(timeline, SkipAt(50)).ok());
  REQUIRE(Add(timeline, Workers(50, 3)).ok());
  REQUIRE(timeline.Withdraw(10, 1).ok());
  CHECK(timeline.last_step() == 30);
  CheckTold(timeline);
}

TEST_CASE("what is left out at one step adds up, until somebody seeks there") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, SkipAt(20)).ok());
  REQUIRE(Add(timeline, SkipAt(20)).ok());
  CHECK(timeline.last().skip_steps == 4);
  v1::Change seek;
  seek.set_step(20);
  seek.set_seek_cursor(*CursorMaker(timeline.first().fingerprint).Make(7, Position()));
  seek.set_skip_steps(1);
  REQUIRE(Add(timeline, seek).ok());
  CHECK(timeline.last().skip_steps == 1);
  CHECK(timeline.last().seek);
  v1::Change most = SkipAt(20);
  most.set_skip_steps(UINT64_MAX);
  CHECK(absl::IsInvalidArgument(Add(timeline, most)));
  REQUIRE(Add(timeline, SkipAt(21)).ok());
  CHECK(timeline.last().skip_steps == 2);
  CHECK_FALSE(timeline.last().seek);
}

TEST_CASE("a cursor is taken where its plan made the step in front of it") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, AtEpoch(4, 0)).ok());
  timeline.BeginWaiting(40);
  const CursorMaker before(timeline.first().fingerprint), behind(timeline.last().fingerprint);
  CHECK(timeline.Read(*before.Make(40, Position())).ok());
  CHECK(timeline.Read(*behind.Make(41, Position())).ok());
  for (const auto& cursor : {*before.Make(41, Position()), *behind.Make(40, Position())}) {
    const absl::Status refused = timeline.Read(cursor).status();
    CHECK(absl::IsFailedPrecondition(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Contains("another history"));
  }
}

TEST_CASE("a cursor of other work is taken when that is allowed") {
  const auto made = [](const std::string& out) {
    v1::PipelineSpec spec;
    const std::string text =
        "name: 'p' stage { range { stop: 9 } } stage { map { out: 'n = " + out +
        "' } } stage { batch { batch_size: 2 } }";
    REQUIRE(ParseTextProto(text, "spec", &spec).ok());
    const auto plan = MakePlan(spec, LocalFileSystem());
    REQUIRE(plan.ok());
    return Timeline(*plan, *FingerprintOf(**plan));
  };
  const Timeline timeline = made("value");
  const std::string cursor =
      *CursorMaker(made("value + 1").first().fingerprint).Make(2, Position());
  CHECK(absl::IsFailedPrecondition(timeline.Read(cursor).status()));
  const auto allowed = timeline.Read(cursor, ChangedWork::kAllow);
  REQUIRE(allowed.ok());
  CHECK(allowed->step == 2);
  CHECK_FALSE(allowed->notice.empty());
}

TEST_CASE("a stream does not go on in files that came later") {
  const test::ScratchFolder folder;
  std::ofstream(folder / "a.txt") << "1\n2\n";
  v1::PipelineSpec spec;
  const std::string text = "name: 'p' stage { text_line { files: '" + (folder / "*.txt") +
                           "' } } stage { batch { batch_size: 4 } }";
  REQUIRE(ParseTextProto(text, "spec", &spec).ok());
  const auto plan = MakePlan(spec, LocalFileSystem());
  REQUIRE(plan.ok());
  const Timeline timeline(*plan, *FingerprintOf(**plan));
  v1::Change smaller;
  smaller.set_step(5);
  *smaller.add_stage() = (*plan)->spec().stage(1);
  smaller.mutable_stage(0)->mutable_batch()->set_batch_size(2);
  REQUIRE(timeline.Prepare(smaller, LocalFileSystem()).ok());
  std::ofstream(folder / "b.txt") << "3\n";
  const absl::Status refused = timeline.Prepare(smaller, LocalFileSystem()).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("the files have changed"));
}

TEST_CASE("a history names no files that it could not be read back with") {
  const test::ScratchFolder folder;
  std::ofstream(folder / "a.txt") << "1\n";
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("name: 'p' stage { text_line { files: '" + (folder / "*.txt") +
                             "' } } stage { batch { batch_size: 1 } } stage { repeat {} }",
                         "spec", &spec)
              .ok());
  const auto plan = MakePlan(spec, LocalFileSystem());
  REQUIRE(plan.ok());
  Timeline timeline(*plan, *FingerprintOf(**plan));
  v1::Change change;
  change.set_epoch(1);
  *change.mutable_stage() = spec.stage();
  {
    const auto next = timeline.Prepare(change, LocalFileSystem());
    REQUIRE(next.ok());
    CHECK(timeline.NameFiles(*next, &change).ok());
  }
  std::ofstream(folder / "caf\xe9.txt") << "2\n";
  *change.mutable_stage() = spec.stage();
  const auto next = timeline.Prepare(change, LocalFileSystem());
  REQUIRE(next.ok());
  const absl::Status status = timeline.NameFiles(*next, &change);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "files: expected text in UTF-8, found "));
  CHECK(absl::EndsWith(status.message(), "/caf\\xe9.txt"));
}

TEST_CASE("a history has a limit") {
  Timeline timeline = Made();
  for (size_t i = 0; i < Timeline::kMaxChanges; ++i) REQUIRE(Add(timeline, Workers(i, 2)).ok());
  CHECK(absl::IsResourceExhausted(Add(timeline, Workers(Timeline::kMaxChanges, 2))));
}

TEST_CASE("a history at its limit is read back, also where its last change was withdrawn") {
  Timeline timeline = Made();
  for (size_t i = 1; i < Timeline::kMaxChanges; ++i) REQUIRE(Add(timeline, Workers(i, 2)).ok());
  v1::Change change = AtEpoch(4, 0);
  change.set_slots(7);
  REQUIRE(Add(timeline, change).ok());
  REQUIRE(timeline.Withdraw(Timeline::kMaxChanges, 77).ok());
  REQUIRE(timeline.history().size() == Timeline::kMaxChanges + 1);
  Timeline again = Made();
  for (const v1::Change& kept : timeline.history()) {
    absl::StatusOr<Timeline::NextPlan> next = again.Prepare(kept, LocalFileSystem());
    REQUIRE(next.ok());
    REQUIRE(again.Add(kept, *std::move(next), Timeline::kMaxKeptChanges).ok());
  }
  CHECK(absl::IsResourceExhausted(Add(again, Workers(2 * Timeline::kMaxChanges, 2))));
}

TEST_CASE("what no history can have is refused") {
  Timeline timeline = Made();
  // The files of the beginning, behind another change.
  REQUIRE(Add(timeline, Workers(3, 2)).ok());
  v1::Change beginning = AtEpoch(0, 0);
  CHECK(absl::IsInvalidArgument(Add(timeline, beginning)));
  v1::Change without_stages = AtEpoch(2, 0);
  without_stages.clear_stage();
  CHECK(absl::IsInvalidArgument(Add(timeline, without_stages)));
  CHECK(absl::IsFailedPrecondition(Add(timeline, AtEpoch(2, 1))));
  CHECK(timeline.history().size() == 1);
}

}  // namespace
}  // namespace penstock
