// What changes a running pipeline: who is told of it and by whom it was, from which step it holds,
// and which streams it reaches.

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/on_behalf.h"
#include "server/expr/function.h"
#include "server/service/pipeline/pipeline.h"
#include "server/service/state/text_proto.h"
#include "tests/service/counting.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

using test::Until;

const Asker kSomebody = {7, "user 7"};
constexpr uid_t kOwner = 54321;

// A pipeline of four steps an epoch, and what it tells. `first_free`: of an earlier daemon;
// `repeats`: again and again.
struct Steered {
  explicit Steered(uint64_t first_free = 0, bool paused = false, bool repeats = true) {
    test::WriteShard(folder / "n", 0, 16);
    v1::PipelineSpec spec =
        test::CountingSpec(folder / "n", "p", repeats ? "stage { repeat {} }" : "");
    spec.set_workers(1);
    spec.mutable_ring()->set_slots(8);
    PipelineOptions options;
    options.owner.uid = kOwner;
    options.state.paused = paused;
    if (first_free > 0) {
      options.high_water =
          HighWater::Create({.pipeline = "p", .limit = first_free, .is_of_before = true});
    }
    options.on_event = [this](v1::Event event) {
      const std::lock_guard<std::mutex> lock(mutex);
      events.push_back(std::move(event));
    };
    const auto created = Pipeline::Create(spec, options, LocalFileSystem());
    INFO(created.status().ToString());
    REQUIRE(created.ok());
    pipeline = *created;
  }
  ~Steered() { pipeline->Close(absl::CancelledError("the end")); }
  Pipeline* operator->() { return pipeline.get(); }

  // What was told since it was asked last, with who it was.
  std::vector<std::string> Told() {
    const std::lock_guard<std::mutex> lock(mutex);
    std::vector<std::string> told;
    for (const v1::Event& event : events)
      told.push_back(absl::StrCat(event.text(), event.has_uid() ? " by " : "",
                                  event.has_uid() ? absl::StrCat(event.uid()) : ""));
    events.clear();
    return told;
  }
  RequestedChange AtNextEpoch() {
    RequestedChange requested;
    requested.at_next_epoch = true;
    *requested.change.mutable_stage() = pipeline->LastSpec().stage();
    requested.change.mutable_stage(2)->mutable_batch()->set_batch_size(2);
    return requested;
  }

  const test::ScratchFolder folder;
  std::mutex mutex;
  std::vector<v1::Event> events;  // under mutex
  std::shared_ptr<Pipeline> pipeline;
};

// For whom the last plan was made that calls whose_plan().
std::atomic<int64_t> whose_plan{-1};

class Same : public expr::RowKernel {
 public:
  absl::Status Run(absl::Span<const expr::RowValue> arguments, Arena&,
                   expr::RowOutput& out) const override {
    std::memcpy(out.Reserve(sizeof(int64_t)), arguments[0].data, sizeof(int64_t));
    out.Commit();
    return absl::OkStatus();
  }
};

const expr::RowFunctionRegistration kWhosePlan({
    .name = "whose_plan",
    .signature = "whose_plan(number)",
    .doc = "",
    .bind =
        [](absl::Span<const expr::Argument> arguments) -> absl::StatusOr<expr::BoundRowFunction> {
      whose_plan = OnBehalf::User() ? static_cast<int64_t>(*OnBehalf::User()) : -1;
      expr::BoundRowFunction bound;
      bound.type = arguments[0].type;
      bound.kernel = std::make_shared<Same>();
      bound.tensor_arguments = {0};
      return bound;
    },
});

RequestedChange Skip(uint64_t steps = 1) {
  RequestedChange requested;
  requested.change.set_skip_steps(steps);
  return requested;
}

RequestedChange Workers(int workers) {
  RequestedChange requested;
  requested.change.set_workers(workers);
  return requested;
}

RequestedChange Withdrawal() {
  RequestedChange requested;
  requested.withdraw = true;
  return requested;
}

using Lines = std::vector<std::string>;

TEST_CASE("what is done to a pipeline is told once, with who did it") {
  Steered pipeline(0, /*paused=*/true);
  REQUIRE(pipeline->Pause(true, nullptr, kSomebody).ok());
  CHECK(pipeline.Told().empty());
  for (int i = 0; i < 2; ++i) REQUIRE(pipeline->Pause(false, nullptr, kSomebody).ok());
  CHECK(pipeline.Told() == Lines{"it goes on by 7"});
  for (int i = 0; i < 2; ++i) REQUIRE(pipeline->Pause(true, nullptr, kSomebody).ok());
  CHECK(pipeline.Told() == Lines{"it begins no further batch by 7"});

  for (const auto& [slow, verb] : {std::pair(ring::SlowPolicy::kBlock, "waited for"),
                                   std::pair(ring::SlowPolicy::kDetach, "detached"),
                                   std::pair(ring::SlowPolicy::kSkip, "skipped over")}) {
    REQUIRE(pipeline->SetSlowPolicy("g", slow, 5, kSomebody).ok());
    CHECK(pipeline.Told() == Lines{absl::StrCat("group g: slow consumers are ", verb, " by 7")});
  }
  Newcomer worker;
  worker.spec.mode = ring::GroupMode::kSplit;
  worker.spec.group = "workers";
  REQUIRE(pipeline->Attach(worker).ok());
  CHECK(absl::IsNotFound(pipeline->DropGroup("g", kSomebody)));
  CHECK(pipeline.Told().empty());
  REQUIRE(pipeline->DropGroup("workers", kSomebody).ok());
  CHECK(pipeline.Told() == Lines{"group workers was ended by 7"});

  RequestedChange requested = Skip(3);
  requested.step = 100;
  requested.by = kSomebody;
  REQUIRE(pipeline->Update(requested).ok());
  {
    const std::lock_guard<std::mutex> lock(pipeline.mutex);
    REQUIRE(pipeline.events.size() == 1);
    CHECK(pipeline.events[0].change().skip_steps() == 3);
  }
  CHECK(pipeline.Told() == Lines{"from step 100 on by 7"});
  requested = Withdrawal();
  requested.by = kSomebody;
  requested.change.set_time_unix_ms(5);
  REQUIRE(pipeline->Update(requested).ok());
  {
    const std::lock_guard<std::mutex> lock(pipeline.mutex);
    REQUIRE(pipeline.events.size() == 1);
    CHECK(pipeline.events[0].change().withdrawn_unix_ms() == 5);
  }
  CHECK(pipeline.Told() == Lines{"that from step 100 on was withdrawn by 7"});
}

TEST_CASE("what the daemon chooses is told as its own") {
  Steered pipeline;
  Tuning tuning;
  tuning.told = {"it has 3 workers"};
  REQUIRE(pipeline->Tune(tuning, v1::Autotune()).ok());
  CHECK(pipeline.Told() == Lines{"it has 3 workers"});
}

TEST_CASE("a change holds from the first step that nobody can have had, and numbers at once") {
  Steered pipeline(/*first_free=*/10, /*paused=*/true);
  std::string notice;
  const auto numbers = pipeline->Update(Workers(2), &notice);
  REQUIRE(numbers.ok());
  CHECK(numbers->step() == 0);
  CHECK(notice.empty());
  RequestedChange requested = Skip();
  requested.step = 9;
  const std::string refused(pipeline->Update(requested).status().message());
  CHECK(absl::StrContains(refused, "the earliest is 10"));
  CHECK(absl::StrContains(refused, "before the daemon was started again"));
  requested.step = 10;
  const auto change = pipeline->Update(requested, &notice);
  INFO(change.status().ToString());
  REQUIRE(change.ok());
  CHECK(change->step() == 10);
  CHECK(notice.empty());
}

TEST_CASE("what somebody may have had before the daemon was started again is not withdrawn") {
  Steered pipeline(/*first_free=*/10, /*paused=*/true);
  REQUIRE(pipeline->Update(Skip())->step() == 10);
  const absl::Status refused = pipeline->Update(Withdrawal()).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "the next one is 10"));
}

TEST_CASE("functions that a pipeline does not call come with its owner alone") {
  Steered pipeline;
  RequestedChange requested;
  requested.change.add_stage()->mutable_python()->mutable_function()->set_file("/proc/1/fd/3");
  for (const std::optional<uid_t> user :
       {std::optional<uid_t>(), std::optional<uid_t>(7), std::optional<uid_t>(kOwner)}) {
    requested.user = user;
    const absl::Status refused = pipeline->Update(requested).status();
    // The owner is told what else is wrong with it.
    CHECK(absl::IsPermissionDenied(refused) == (user != kOwner));
    CHECK_FALSE(refused.ok());
  }
  requested = Skip();
  CHECK(pipeline->Update(requested).ok());
}

TEST_CASE(
    "numbers that are to hold from a step on hold at once while a change waits for its epoch") {
  Steered pipeline(0, /*paused=*/true);
  REQUIRE(pipeline->Update(pipeline.AtNextEpoch()).ok());
  RequestedChange requested = Workers(2);
  requested.step = 20;
  const auto numbers = pipeline->Update(requested);
  INFO(numbers.status().ToString());
  REQUIRE(numbers.ok());
  CHECK(numbers->step() == 0);
  CHECK(absl::StrContains(pipeline->Update(pipeline.AtNextEpoch()).status().message(),
                          "a change waits for the beginning of epoch 1"));
}

TEST_CASE("a change that names a step and an epoch is refused") {
  Steered pipeline;
  RequestedChange requested = pipeline.AtNextEpoch();
  requested.step = 100;
  const absl::Status refused = pipeline->Update(requested).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "found both"));
  CHECK(pipeline->Describe().history_size() == 0);
}

TEST_CASE("each number alone is a change, and nothing is none") {
  Steered pipeline;
  CHECK(absl::IsInvalidArgument(pipeline->Update(RequestedChange()).status()));
  RequestedChange requested;
  requested.change.set_read_ahead_bytes(1 << 20);
  CHECK(pipeline->Update(requested).ok());
  CHECK(pipeline->Update(Workers(2)).ok());
  requested = RequestedChange();
  requested.change.set_slots(6);
  CHECK(pipeline->Update(requested).ok());
  requested = RequestedChange();
  requested.change.set_memory_bytes(1 << 30);
  CHECK(pipeline->Update(requested).ok());
  CHECK(pipeline->Describe().history_size() == 4);
}

TEST_CASE("what rests is changed, taken back and profiled as what runs") {
  Steered pipeline;
  const auto rest = [&] {
    pipeline->Rest();
    REQUIRE(pipeline->Stats().resting());
  };
  rest();
  RequestedChange requested = Skip();
  requested.step = 100;
  CHECK(pipeline->Update(requested).ok());
  CHECK_FALSE(pipeline->Stats().resting());
  rest();
  CHECK(pipeline->Update(Withdrawal()).ok());
  CHECK_FALSE(pipeline->Stats().resting());
  rest();
  CHECK(pipeline->Profile(absl::Milliseconds(1), [] { return false; }).ok());
  CHECK_FALSE(pipeline->Stats().resting());
  rest();
  CHECK(pipeline->Attach(Newcomer()).ok());
}

TEST_CASE("fault 64: the plan of a change is made on behalf of the owner") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n", 0, 16);
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("name: 'p' stage { tfrecord { files: '" + (folder / "n") +
                             "' } } stage { parse_example { feature { key: 'n' int64 {} } } }"
                             " stage { name: 'map' map { out: 'n = whose_plan(n)' } }"
                             " stage { batch { batch_size: 4 } } stage { repeat {} }",
                         "spec", &spec)
              .ok());
  PipelineOptions options;
  options.owner.uid = kOwner;
  const auto pipeline = Pipeline::Create(spec, options, LocalFileSystem());
  INFO(pipeline.status().ToString());
  REQUIRE(pipeline.ok());
  RequestedChange requested;
  *requested.change.add_stage() = (*pipeline)->LastSpec().stage(2);
  requested.change.mutable_stage(0)->mutable_map()->set_out(0, "n = whose_plan(n) + 1");
  whose_plan = -1;
  const absl::Status updated = (*pipeline)->Update(requested).status();
  INFO(updated.ToString());
  CHECK(updated.ok());
  CHECK(whose_plan == kOwner);
  (*pipeline)->Close(absl::CancelledError("the end"));
}

TEST_CASE("what has ended is changed no more") {
  Steered pipeline(0, /*paused=*/false, /*repeats=*/false);
  Until([&] { return pipeline->Stats().state() == v1::PIPELINE_STATE_FINISHED; });
  const absl::Status refused = pipeline->Update(Skip()).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "the stream has ended"));
}

TEST_CASE("what becomes of slow consumers reaches those who are there, and those who come") {
  Steered pipeline;
  const auto first = pipeline->Attach(Newcomer());
  REQUIRE(first.ok());
  REQUIRE(pipeline->SetSlowPolicy("default", ring::SlowPolicy::kSkip, 5).ok());
  REQUIRE(pipeline->Attach(Newcomer()).ok());
  const auto consumers = first->stream->writer().Consumers();
  REQUIRE(consumers.size() == 2);
  for (const ring::ConsumerStats& consumer : consumers) {
    CHECK(consumer.slow == ring::SlowPolicy::kSkip);
    CHECK(consumer.lag_ms == 5);
  }
  const v1::ListGroupsResponse groups = pipeline->Groups();
  REQUIRE(groups.groups_size() == 1);
  CHECK(groups.groups(0).slow() == v1::SLOW_POLICY_SKIP);
  CHECK(groups.groups(0).lag_ms() == 5);
}

}  // namespace
}  // namespace penstock
