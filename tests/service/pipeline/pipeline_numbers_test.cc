// Who chose the numbers of a pipeline, and what becomes of them.
#include "server/service/pipeline/pipeline_numbers.h"

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "tests/service/pipeline_parts.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::Parts;

v1::WorkerDefaults Autotuned(int workers) {
  v1::WorkerDefaults defaults;
  defaults.set_workers(workers);
  defaults.set_autotune(true);
  return defaults;
}

v1::PipelineSpec Described(const PipelineNumbers& numbers) {
  v1::PipelineSpec spec;
  numbers.Describe(&spec);
  return spec;
}

TEST_CASE("the daemon chooses what neither the spec nor a change names") {
  Parts parts("workers: 2", Autotuned(5));
  CHECK_FALSE(parts.numbers.tunes().workers);
  CHECK(parts.numbers.tunes().slots);
  CHECK(parts.numbers.tunes().read_ahead);
  const uint32_t slots = parts.numbers.slots();

  v1::Change change;
  change.set_workers(0);
  change.set_slots(9);
  change.set_read_ahead_bytes(1 << 20);
  parts.numbers.Take(change);
  CHECK(parts.numbers.tunes().workers);
  CHECK_FALSE(parts.numbers.tunes().slots);
  CHECK_FALSE(parts.numbers.tunes().read_ahead);
  CHECK(Described(parts.numbers).workers() == 5);
  CHECK(Described(parts.numbers).ring().slots() == 9);
  CHECK(Described(parts.numbers).read_ahead_bytes() == 1 << 20);
  CHECK(parts.numbers.ForStream().workers == 5);
  CHECK_FALSE(parts.numbers.ForStream().tries_fewer_slots);
  CHECK(parts.numbers.ForStream().read_ahead.at("") == 1 << 20);

  // What is given back is as at the beginning.
  change.set_slots(0);
  change.set_read_ahead_bytes(0);
  parts.numbers.Take(change);
  CHECK(parts.numbers.slots() == slots);
  CHECK(Described(parts.numbers).read_ahead_bytes() == 0);
  CHECK(parts.numbers.ForStream().read_ahead.empty());
  CHECK(parts.numbers.ForStream().tries_fewer_slots);
}

TEST_CASE("without autotune nothing is the daemon's to choose") {
  CHECK_FALSE(Parts().numbers.tunes().any());
}

TEST_CASE("numbers that changes of a history name hold from the beginning") {
  const Parts parts("workers: 2");
  v1::Change change;
  change.set_workers(3);
  CHECK(PipelineNumbers(parts.basis, {change}).ForStream().workers == 3);
}

TEST_CASE("workers come out of what the owner may have") {
  v1::DaemonConfig config;
  config.add_user_quota()->set_max_workers(3);
  PipelineOptions options;
  options.owner.uid = 54321;
  options.quotas = std::make_shared<UserQuotas>();
  options.quotas->SetQuotas(config.user_quota());
  options.defaults.set_workers(5);
  const PipelineBasis chosen(test::Checked(test::PartsSpec(), options.defaults), options,
                             LocalFileSystem());
  const PipelineBasis named(test::Checked(test::PartsSpec("workers: 2"), options.defaults), options,
                            LocalFileSystem());
  PipelineNumbers first(named, {});
  REQUIRE(first.TakeWorkers(/*returns=*/false).ok());
  CHECK(first.workers() == 2);
  CHECK(first.MostWorkers(9) == 3);
  {
    // What the daemon chooses is what is left, in its spec too.
    PipelineNumbers second(chosen, {});
    REQUIRE(second.TakeWorkers(/*returns=*/false).ok());
    CHECK(second.ForStream().workers == 1);
    CHECK(Described(second).workers() == 1);
    CHECK(absl::IsResourceExhausted(PipelineNumbers(named, {}).TakeWorkers(/*returns=*/false)));
    // What comes back has what its spec names or, where that names nothing, one at least.
    PipelineNumbers third(named, {}), fourth(chosen, {});
    REQUIRE(third.TakeWorkers(/*returns=*/true).ok());
    CHECK(third.ForStream().workers == 2);
    REQUIRE(fourth.TakeWorkers(/*returns=*/true).ok());
    CHECK(fourth.ForStream().workers == 1);
  }
  // All is given back.
  PipelineNumbers last(chosen, {});
  REQUIRE(last.TakeWorkers(/*returns=*/false).ok());
  CHECK(last.workers() == 1);
  v1::Change change;
  change.set_workers(0);
  last.Take(change);
  CHECK(last.ForStream().workers == 1);
}

TEST_CASE("a pipeline's own limit of memory bounds its slots, and is charged with each ring") {
  Parts parts("ring { slots: 16 }");
  v1::Change change;
  change.set_memory_bytes(1);
  const absl::Status refused = parts.numbers.Check(change);
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("memory_bytes: expected 0 (no limit"));
  change.set_memory_bytes(400'000);
  REQUIRE(parts.numbers.Check(change).ok());
  const MemoryOwner owner = parts.numbers.Limited({"p", 1, 2});
  CHECK(owner.own_limit->load() == 0);
  parts.numbers.Take(change);
  CHECK(parts.numbers.slots() < 16);
  CHECK(parts.numbers.slots() >= 2);
  CHECK(owner.own_limit->load() == 400'000);
}

TEST_CASE("numbers out of their range are refused") {
  const Parts parts;
  v1::Change change;
  change.set_workers(-1);
  CHECK(absl::IsInvalidArgument(parts.numbers.Check(change)));
  change.Clear();
  change.set_slots(1);
  CHECK(absl::IsInvalidArgument(parts.numbers.Check(change)));
  change.Clear();
  change.set_read_ahead_bytes(5);
  CHECK(absl::IsInvalidArgument(parts.numbers.Check(change)));
  CHECK(parts.numbers.Check(v1::Change()).ok());
}

}  // namespace
}  // namespace penstock
