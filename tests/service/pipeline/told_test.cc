// What a pipeline tells of itself: its description, its statistics and its groups.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "base/memory_account.h"
#include "server/service/state/text_proto.h"
#include "tests/service/owned_pipeline.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::kGuest;
using test::kOwner;
using test::Owned;
using test::Reading;
using test::Until;

TEST_CASE("a description has the numbers that hold now, and whose the pipeline is") {
  Owned pipeline;
  RequestedChange requested;
  requested.change.set_workers(3);
  requested.change.set_slots(6);
  REQUIRE(pipeline->Update(requested).ok());
  const v1::Pipeline told = pipeline->Describe();
  CHECK(told.spec().workers() == 3);
  CHECK(told.spec().ring().slots() == 6);
  CHECK(told.slots() == 6);
  CHECK(told.workers() == 3);
  CHECK(told.owner_uid() == kOwner);
  CHECK(told.state() == v1::PIPELINE_STATE_RUNNING);
  REQUIRE(pipeline->Pause(true).ok());
  CHECK(pipeline->Describe().state() == v1::PIPELINE_STATE_PAUSED);
  CHECK(pipeline->Stats().state() == v1::PIPELINE_STATE_PAUSED);
}

TEST_CASE("of a consumer it is told whether it left, was sent away, or missed steps") {
  Owned pipeline;
  REQUIRE(pipeline->SetSlowPolicy("default", ring::SlowPolicy::kSkip, 1).ok());
  Newcomer slow = Owned::Anywhere(kOwner);
  slow.spec.name = "slow";
  slow.pid = 11;
  const auto behind = pipeline->Attach(slow), fast = pipeline->Attach(Owned::Anywhere(kGuest));
  REQUIRE(behind.ok());
  REQUIRE(fast.ok());
  Reading reads(*fast), stands(*behind);
  reads.Take(20);
  v1::PipelineStats stats = pipeline->Stats();
  REQUIRE(stats.consumers_size() == 2);
  const v1::ConsumerStats& one = stats.consumers(0);
  CHECK(one.id() == behind->handle.id);
  CHECK(one.name() == "slow");
  CHECK(one.group() == "default");
  CHECK(one.pid() == 11);
  CHECK(one.uid() == kOwner);
  CHECK(one.missed() > 0);
  CHECK_FALSE(one.detached());
  CHECK_FALSE(one.left());
  CHECK(stats.consumers(1).missed() == 0);
  CHECK(stats.consumers(1).position() == 20);
  ring::Lease held;
  REQUIRE(reads.reader().Next(60'000'000'000, &held) == ring::Reader::Result::kBatch);
  reads.reader().Leave();
  REQUIRE(pipeline->DetachConsumer(behind->handle.id, 0).ok());
  stats = pipeline->Stats();
  REQUIRE(stats.consumers_size() == 2);
  CHECK(stats.consumers(0).detached());
  CHECK_FALSE(stats.consumers(0).left());
  CHECK(stats.consumers(1).left());
  CHECK(stats.consumers(1).leases() == 1);
  CHECK_FALSE(stats.consumers(1).detached());
  // Nobody of the group stands anywhere any more.
  const v1::ListGroupsResponse groups = pipeline->Groups();
  REQUIRE(groups.groups_size() == 1);
  CHECK(groups.groups(0).consumers() == 0);
  CHECK(groups.groups(0).first_position() == 0);
  CHECK(groups.groups(0).leases() == 1);
}

TEST_CASE("there is one profile at a time, and it ends with who asked for it") {
  Owned pipeline;
  std::atomic<bool> gone{false}, has_begun{false};
  const auto begin = std::chrono::steady_clock::now();
  auto first = std::async(std::launch::async, [&] {
    return pipeline->Profile(absl::Minutes(2), [&] {
      has_begun = true;
      return gone.load();
    });
  });
  Until([&] { return has_begun.load(); });
  const absl::Status refused =
      pipeline->Profile(absl::Milliseconds(1), [] { return false; }).status();
  CHECK(absl::IsFailedPrecondition(refused));
  gone = true;
  CHECK(first.get().ok());
  CHECK(std::chrono::steady_clock::now() - begin < std::chrono::minutes(2));
  CHECK(pipeline->Profile(absl::Milliseconds(1), [] { return false; }).ok());
}

TEST_CASE("what was left out is told with its file, its place and why") {
  const test::ScratchFolder folder;
  test::WriteFile(folder / "damaged", std::string(100, 'x'));
  test::WriteShard(folder / "sound", 0, 8);
  v1::PipelineSpec spec = test::CountingSpec(folder / "*", "p");
  spec.mutable_stage(0)->mutable_tfrecord()->mutable_damage()->set_on_damage(
      v1::DamagePolicy::SKIP_SHARD);
  const auto created = Pipeline::Create(spec, {}, LocalFileSystem());
  INFO(created.status().ToString());
  REQUIRE(created.ok());
  Until([&] { return (*created)->Stats().steps() == 2; });
  const v1::ListSkippedResponse skipped = (*created)->Skipped();
  (*created)->Close(absl::CancelledError("the end"));
  CHECK(skipped.count() == 1);
  REQUIRE(skipped.places_size() == 1);
  CHECK(skipped.places(0).file() == folder / "damaged");
  CHECK(skipped.places(0).offset() == 0);
  // Up to its end.
  CHECK(skipped.places(0).length() == 0);
  CHECK(skipped.places(0).epoch() == 0);
  CHECK_FALSE(skipped.places(0).reason().empty());
}

TEST_CASE("steps are counted from the beginning, and made ones from where the stream began") {
  Owned pipeline;
  const auto attached = pipeline->Attach(pipeline.At(kOwner, 50));
  REQUIRE(attached.ok());
  Reading(*attached).Take(5);
  Until([&] { return pipeline->Stats().steps() == 59; });
  CHECK(pipeline->Stats().made_steps() == 9);
  attached->stream->writer().Detach(attached->handle.id);
  pipeline->Rest();
  const v1::PipelineStats stats = pipeline->Stats();
  CHECK(stats.resting());
  CHECK(stats.steps() == 55);
}

TEST_CASE("that a disk holds it up is told as a write that takes long") {
  PipelineOptions options;
  HighWaterOptions high_water;
  high_water.pipeline = "p";
  high_water.write = [](uint64_t) { return absl::ResourceExhaustedError("no room"); };
  high_water.path = "/state/p.high-water";
  high_water.limit = 2;
  high_water.run_later = [](const std::function<void()>&) { return false; };
  options.high_water = HighWater::Create(high_water);
  Owned pipeline(0, false, options);
  Until([&] { return pipeline->Stats().has_oldest_write(); });
  const v1::PipelineStats stats = pipeline->Stats();
  CHECK(stats.steps() == 2);
  CHECK(stats.oldest_write().doing() == "writing");
  CHECK(stats.oldest_write().file() == "/state/p.high-water");
  CHECK_FALSE(stats.has_oldest_read());
}

TEST_CASE("memory for work is told with its limit, where it has one") {
  for (const uint64_t most : {UINT64_MAX, uint64_t{1} << 30}) {
    PipelineOptions options;
    const auto account = MemoryAccount::Create({.name = "pipeline p", .limit = "a limit"});
    account->set_bytes_max(most);
    options.work_memory = account;
    Owned pipeline(0, false, options);
    account->Take(1000);
    const v1::PipelineStats stats = pipeline->Stats();
    CHECK(stats.work_bytes() >= 1000);
    CHECK(stats.max_work_bytes() == (most == UINT64_MAX ? 0 : most));
    account->GiveBack(1000);
  }
}

TEST_CASE("small pages are told where the ring has them") {
  Owned pipeline;
  const auto attached = pipeline->Attach(Owned::Anywhere(kOwner));
  REQUIRE(attached.ok());
  CHECK(pipeline->Stats().small_pages() == !attached->stream->writer().has_huge_pages());
}

// What it tells when its ring of 16 slots is full.
v1::PipelineStats StatsOf(const std::string& stages) {
  v1::PipelineSpec spec;
  REQUIRE(ParseTextProto("name: 'p' workers: 1 ring { slots: 16 } " + stages +
                             " stage { batch { batch_size: 8 } }",
                         "spec", &spec)
              .ok());
  const auto created = Pipeline::Create(spec, {}, LocalFileSystem());
  INFO(created.status().ToString());
  REQUIRE(created.ok());
  Until([&] { return (*created)->Stats().steps() == 16; });
  const v1::PipelineStats stats = (*created)->Stats();
  (*created)->Close(absl::CancelledError("the end"));
  return stats;
}

TEST_CASE("elements wait in front of stages that give as many as they take, and only there") {
  const v1::PipelineStats stats = StatsOf(
      "stage { range { stop: 1000000 } } stage { shuffle { buffer_size: 10 seed: 1 } }"
      " stage { filter { predicate: 'value % 2 == 0' } }");
  REQUIRE(stats.stages_size() == 4);
  CHECK(stats.stages(0).queue() == 0);
  CHECK(stats.stages(1).name() == "shuffle");
  CHECK(stats.stages(1).queue() > 0);
  CHECK(stats.stages(1).queue() < 100);
  // What it has left out does not wait.
  CHECK(stats.stages(2).name() == "filter");
  CHECK(stats.stages(2).queue() == 0);
  for (const v1::StageStats& stage : stats.stages()) {
    CHECK_FALSE(stage.has_kept());
    CHECK_FALSE(stage.has_packed());
    CHECK_FALSE(stage.has_python_workers());
  }
  // Rows, which are in three batches at most.
  CHECK(stats.stages(3).name() == "batch");
  CHECK(stats.stages(3).queue() <= 24);
}

TEST_CASE("inputs that nobody has weighed are told to weigh the same") {
  const auto weights_of = [](const std::string& weights) {
    const std::string input = " input { stage { range { stop: 100000 } } }";
    const v1::PipelineStats stats =
        StatsOf("stage { sample_from_datasets { seed: 1 " + weights + input + input + " } }");
    std::vector<double> told(stats.stages(0).input_weight().begin(),
                             stats.stages(0).input_weight().end());
    CHECK(stats.stages(1).input_weight().empty());
    return told;
  };
  CHECK(weights_of("") == std::vector<double>{1, 1});
  CHECK(weights_of("weight: 0.25 weight: 0.75") == std::vector<double>{0.25, 0.75});
}

}  // namespace
}  // namespace penstock
