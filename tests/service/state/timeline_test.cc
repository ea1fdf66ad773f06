// Changes that wait for their epoch, in a history; and what a daemon takes that is started again
// with one (fault 49).

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
  CHECK(FromWhere(AtEpoch(0, 50)) == "the first epoch behind step 49");
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

TEST_CASE("a change that waits for any epoch behind a step waits for one as soon as it is known") {
  Timeline timeline = Made();
  v1::Change skip;
  skip.set_step(7);
  skip.set_skip_steps(2);
  REQUIRE(Add(timeline, skip).ok());
  // The step in front of it is to be one of that change.
  CHECK(absl::IsFailedPrecondition(Add(timeline, AtEpoch(0, 7))));
  REQUIRE(Add(timeline, AtEpoch(0, 8)).ok());
  CHECK(timeline.is_waiting());
  CHECK(timeline.waits_for_any_epoch());
  CHECK(timeline.last().any_pass_from == 8);
  CHECK_FALSE(timeline.last().pass);
  const absl::Status second = Add(timeline, AtEpoch(9, 0));
  CHECK(absl::StrContains(second.message(),
                          "waits for the beginning of the first epoch behind step 7"));
  // Read back it is the same.
  Timeline again = Made();
  for (const v1::Change& change : timeline.history()) REQUIRE(Add(again, change).ok());
  CHECK(again.Etag() == timeline.Etag());
  CHECK(again.waits_for_any_epoch());

  timeline.KnowEpoch(3);
  CHECK(timeline.is_waiting());
  CHECK_FALSE(timeline.waits_for_any_epoch());
  CHECK(timeline.last().pass == 3);
  CHECK(FromWhere(timeline.history().back()) == "epoch 3");
  timeline.BeginWaiting(26);
  CHECK(FromWhere(timeline.history().back()) == "step 26");
  CHECK(timeline.From(26).front().pass == 3);

  REQUIRE(again.Withdraw(7, 1).ok());
  CHECK_FALSE(again.is_waiting());
  CHECK(again.last().first_step == 7);
  REQUIRE(Add(again, AtEpoch(0, 9)).ok());
}

TEST_CASE("a change does not wait for an epoch that its own repeat may not have") {
  v1::PipelineSpec spec = Spec(10, 1);
  spec.mutable_stage(3)->mutable_repeat()->set_count(6);
  const auto plan = MakePlan(spec, LocalFileSystem());
  REQUIRE(plan.ok());
  const struct {
    int64_t count;
    bool taken;
  } cases[] = {{5, false}, {6, true}, {7, true}, {-1, true}};
  for (const auto& c : cases) {
    INFO("count " << c.count);
    Timeline timeline(*plan, *FingerprintOf(**plan));
    v1::Change change = AtEpoch(0, 40);
    change.mutable_stage(3)->mutable_repeat()->set_count(c.count);
    const absl::Status status = Add(timeline, change);
    INFO(status.ToString());
    CHECK(status.ok() == c.taken);
    if (!c.taken) CHECK(absl::StrContains(status.message(), "the new repeat has the count 5"));
  }
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

std::string CursorOf(const Phase& phase, uint64_t step, const Position& position = Position()) {
  return *CursorMaker(phase.fingerprint).Make(step, position);
}

std::string Refusal(const Timeline& timeline, const std::string& cursor) {
  const absl::Status refused = timeline.Read(cursor).status();
  CHECK(absl::IsFailedPrecondition(refused));
  return std::string(refused.message());
}

TEST_CASE("a cursor of a run without the changes of position in front of it is refused") {
  Timeline timeline = Made();
  const Timeline plain = Made();
  REQUIRE(Add(timeline, SkipAt(20)).ok());
  // What stands in front of the change is common to both, and the step that ends there.
  for (const uint64_t step : {1, 19, 20}) {
    const std::string cursor = CursorOf(plain.first(), step);
    CHECK(timeline.Read(cursor).ok());
    CHECK(plain.Read(CursorOf(timeline.From(step - 1)[0], step)).ok());
    CHECK(CursorOf(timeline.From(step - 1)[0], step) == cursor);
  }
  CHECK_THAT(
      Refusal(timeline, CursorOf(plain.first(), 21)),
      Catch::Contains("it had no change of position in front of step 21, this pipeline has 2 "
                      "steps left out in front of step 20"));
  const std::string behind = CursorOf(timeline.last(), 21);
  CHECK(timeline.Read(behind).ok());
  CHECK_THAT(Refusal(plain, behind),
             Catch::Contains("it had changes of position in front of step 21") &&
                 Catch::Contains("this pipeline has none"));
  CHECK(behind.size() <= CursorOf(plain.first(), 21).size() + 9);

  Timeline other = Made();
  REQUIRE(Add(other, SkipAt(21)).ok());
  CHECK_THAT(Refusal(other, CursorOf(timeline.last(), 30)),
             Catch::Contains("its changes of position in front of step 30 are not those of this "
                             "pipeline, which are 2 steps left out in front of step 21"));
}

TEST_CASE("cursors are known by what the changes do, and not by how they were asked for") {
  const Timeline plain = Made();
  Timeline twice = Made(), once = Made(), told = Made();
  REQUIRE(Add(twice, SkipAt(20)).ok());
  REQUIRE(Add(twice, SkipAt(20)).ok());
  REQUIRE(Add(twice, Workers(25, 3)).ok());
  v1::Change skip = SkipAt(20);
  skip.set_skip_steps(4);
  REQUIRE(Add(once, skip).ok());
  CHECK(twice.Read(CursorOf(once.last(), 30)).ok());
  for (const v1::Change& change : twice.history()) REQUIRE(Add(told, change).ok());
  CHECK(told.Read(CursorOf(twice.last(), 30)).ok());

  // Another batch size is a change of position; one that holds from the first step on is the spec
  // itself.
  const auto smaller = [](uint64_t step) {
    v1::Change change;
    change.set_step(step);
    v1::Stage* stage = change.add_stage();
    *stage = Made().first().plan->spec().stage(2);
    stage->mutable_batch()->set_batch_size(4);
    return change;
  };
  Timeline at_20 = Made(), at_21 = Made(), at_0 = Made();
  v1::PipelineSpec spec = Made().first().plan->spec();
  spec.mutable_stage(2)->mutable_batch()->set_batch_size(4);
  const auto plan = *MakePlan(spec, LocalFileSystem());
  const Timeline small(plan, *FingerprintOf(*plan));
  for (auto& [timeline, step] :
       {std::pair<Timeline&, uint64_t>{at_20, 20}, {at_21, 21}, {at_0, 0}}) {
    const absl::Status added = Add(timeline, smaller(step));
    INFO(added.ToString());
    REQUIRE(added.ok());
  }
  CHECK_THAT(Refusal(at_21, CursorOf(at_20.last(), 30)), Catch::Contains("another batch size"));
  CHECK(small.Read(CursorOf(at_0.last(), 30)).ok());
  CHECK(at_0.Read(CursorOf(small.first(), 30)).ok());
}

TEST_CASE("other work is no change of position") {
  v1::PipelineSpec spec;
  REQUIRE(
      ParseTextProto("name: 'p' stage { range { stop: 900 } } stage { map { constant { name: 'K' "
                     "value: 1 } out: 'x = value * K' } } stage { batch { batch_size: 2 } }",
                     "spec", &spec)
          .ok());
  const auto plan = *MakePlan(spec, LocalFileSystem());
  const Timeline plain(plan, *FingerprintOf(*plan));
  Timeline there_and_back = plain;
  for (const int value : {2, 1}) {
    v1::Change change;
    change.set_step(10 * static_cast<uint64_t>(value == 2 ? 1 : 2));
    *change.add_stage() = plan->spec().stage(1);
    change.mutable_stage(0)->mutable_map()->mutable_constant(0)->set_value(0, value);
    REQUIRE(Add(there_and_back, change).ok());
  }
  CHECK(there_and_back.Read(CursorOf(plain.first(), 30)).ok());
  CHECK_THAT(Refusal(there_and_back, CursorOf(plain.first(), 15)),
             Catch::Contains("was made by what this one has at other steps"));
}

TEST_CASE("a pipeline that begins behind a cursor goes on with its run's changes of position") {
  Timeline run = Made();
  REQUIRE(Add(run, SkipAt(20)).ok());
  const std::string start = CursorOf(run.last(), 30);
  Timeline behind = Made();
  behind.BeginBehind(start, ChangedWork::kRefuse);
  CHECK(behind.Read(start).ok());
  CHECK(behind.Read(CursorOf(run.last(), 31)).ok());
  // It has nothing to do with a run that was not changed.
  CHECK_THAT(Refusal(behind, CursorOf(Made().first(), 31)),
             Catch::Contains("this pipeline has those of the cursor that it began with"));
  // Changes that follow are told from those.
  REQUIRE(Add(behind, SkipAt(40)).ok());
  CHECK(behind.Read(start).ok());
  REQUIRE(Add(run, SkipAt(40)).ok());
  CHECK(behind.Read(CursorOf(run.last(), 41)).ok());

  // With the run's history it is the run's pipeline.
  Timeline with_history = Made();
  for (const v1::Change& change : run.history()) REQUIRE(Add(with_history, change).ok());
  with_history.BeginBehind(start, ChangedWork::kRefuse);
  CHECK(with_history.Read(CursorOf(Made().first(), 20)).ok());
  CHECK(with_history.Read(CursorOf(run.last(), 41)).ok());
  // Another history in front of the cursor is another run's.
  Timeline other = Made();
  REQUIRE(Add(other, SkipAt(25)).ok());
  other.BeginBehind(start, ChangedWork::kRefuse);
  CHECK_FALSE(other.Read(start).ok());
}

TEST_CASE("one seeks to any position of the same stages, and to none of an earlier epoch's") {
  Timeline timeline = Made();
  const std::string plain = CursorOf(timeline.first(), 30, Position({30, 1}));
  REQUIRE(Add(timeline, SkipAt(20)).ok());
  v1::Change seek;
  seek.set_step(40);
  seek.set_seek_cursor(plain);
  REQUIRE(Add(timeline, seek).ok());
  CHECK(timeline.last().seek->counters() == std::vector<uint64_t>{30, 1});
  CHECK(timeline.Read(CursorOf(timeline.last(), 41)).ok());
  CHECK_FALSE(timeline.Read(plain).ok());

  REQUIRE(Add(timeline, AtEpoch(4, 0)).ok());
  timeline.BeginWaiting(60);
  seek.set_step(70);
  const absl::Status refused = Add(timeline, seek);
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("an epoch with other stages"));
  seek.set_seek_cursor(CursorOf(timeline.last(), 65));
  CHECK(Add(timeline, seek).ok());
  // A history that is told again knows the same cursors.
  Timeline again = Made();
  for (const v1::Change& change : timeline.history()) REQUIRE(Add(again, change).ok());
  CHECK(again.Read(CursorOf(timeline.last(), 80)).ok());
  CHECK(again.Read(CursorOf(timeline.From(65)[0], 66)).ok());
}

TEST_CASE("a phase that waited for its epoch has the same cursors in a stream and in the history") {
  Timeline timeline = Made();
  REQUIRE(Add(timeline, SkipAt(20)).ok());
  REQUIRE(Add(timeline, AtEpoch(4, 0)).ok());
  std::vector<Phase> phases = timeline.From(30);
  REQUIRE(phases.size() == 2);
  phases[1].BeginAt(52, phases[0]);
  timeline.BeginWaiting(52);
  CHECK(timeline.Read(CursorOf(phases[1], 53)).ok());
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
