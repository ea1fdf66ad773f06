// What is written down of a pipeline, and what holds where that fails.
#include "server/service/pipeline/pipeline_keeper.h"

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tests/service/pipeline_parts.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using test::Parts;

const absl::Status kFull = absl::ResourceExhaustedError("disk full");

v1::Change Workers(int workers) {
  v1::Change change;
  change.set_workers(workers);
  return change;
}

v1::Change AtEpoch(uint64_t epoch) {
  v1::Change change;
  change.set_epoch(epoch);
  *change.mutable_stage() = test::PartsSpec("", /*buffer_size=*/20).stage();
  return change;
}

TEST_CASE("a timeline that cannot be written down is not taken, and no numbers are") {
  Parts parts;
  const std::string etag = parts.keeper.timeline().Etag();
  const Timeline next = parts.With(Workers(3));
  int taken = 0;
  const auto take = [&taken] { ++taken; };
  parts.disk = kFull;
  CHECK(parts.keeper.Keep(etag, next, take) == kFull);
  CHECK(taken == 0);
  CHECK(parts.keeper.timeline().Etag() == etag);
  parts.disk = absl::OkStatus();
  REQUIRE(parts.keeper.Keep(etag, next, take).ok());
  CHECK(taken == 1);
  REQUIRE(parts.written.size() == 2);
  CHECK(parts.written.back().history.size() == 1);
  CHECK(parts.keeper.timeline().Etag() == next.Etag());
}

TEST_CASE("an epoch that begins is kept once, and whoever has looked before that is told so") {
  Parts parts;
  REQUIRE(parts.keeper.Keep(parts.keeper.timeline().Etag(), parts.With(AtEpoch(4)), nullptr).ok());
  const std::string etag = parts.keeper.timeline().Etag();
  const Timeline next = parts.With(Workers(3));
  parts.keeper.EpochBegins(50);
  REQUIRE(parts.written.size() == 2);
  CHECK(parts.written.back().history.back().step() == 50);
  REQUIRE(parts.told.size() == 1);
  CHECK(parts.told[0].text() == "epoch 4 begins at step 50");
  // Of a stream that is behind the first one.
  parts.keeper.EpochBegins(50);
  CHECK(parts.written.size() == 2);
  const absl::Status late = parts.keeper.Keep(etag, next, nullptr);
  CHECK(absl::IsAborted(late));
  CHECK_THAT(std::string(late.message()), Catch::Contains("a change waited for has begun"));
}

TEST_CASE("an epoch waits until it is written down where it begins") {
  Parts parts;
  REQUIRE(parts.keeper.Keep(parts.keeper.timeline().Etag(), parts.With(AtEpoch(4)), nullptr).ok());
  parts.disk = kFull;
  CHECK_FALSE(parts.keeper.EpochBegins(50));
  CHECK_FALSE(parts.keeper.EpochBegins(50));
  CHECK(parts.keeper.timeline().is_waiting());
  CHECK(parts.keeper.EpochUnkeptNs());
  // Once, however often it is tried.
  REQUIRE(parts.told.size() == 1);
  CHECK_THAT(parts.told[0].text(), Catch::Contains("epoch 4 waits at step 50"));
  parts.disk = absl::OkStatus();
  CHECK(parts.keeper.EpochBegins(50));
  CHECK_FALSE(parts.keeper.timeline().is_waiting());
  CHECK_FALSE(parts.keeper.EpochUnkeptNs());
}

TEST_CASE("which epoch a change waits for is kept once, and waited for until it is written down") {
  Parts parts;
  v1::Change change = AtEpoch(0);
  change.set_step(50);
  REQUIRE(parts.keeper.Keep(parts.keeper.timeline().Etag(), parts.With(change), nullptr).ok());
  const std::string etag = parts.keeper.timeline().Etag();
  parts.disk = kFull;
  CHECK_FALSE(parts.keeper.EpochIsKnown(4));
  CHECK_FALSE(parts.keeper.EpochIsKnown(4));
  CHECK(parts.keeper.timeline().waits_for_any_epoch());
  CHECK(parts.keeper.EpochUnkeptNs());
  REQUIRE(parts.told.size() == 1);
  CHECK_THAT(parts.told[0].text(),
             Catch::Contains("the first epoch behind step 49 is epoch 4 could"));
  parts.disk = absl::OkStatus();
  CHECK(parts.keeper.EpochIsKnown(4));
  CHECK_FALSE(parts.keeper.EpochUnkeptNs());
  CHECK(parts.written.back().history.back().epoch() == 4);
  CHECK(parts.written.back().history.back().step() == 0);
  CHECK(parts.told.back().text() ==
        "the first epoch behind step 49 is epoch 4, for which a change waits");
  const size_t written = parts.written.size();
  // Of a stream that is behind the first one.
  CHECK(parts.keeper.EpochIsKnown(4));
  CHECK(parts.written.size() == written);
  CHECK(absl::IsAborted(parts.keeper.Keep(etag, parts.keeper.timeline(), nullptr)));
  CHECK(parts.keeper.EpochBegins(57));
  CHECK(parts.written.back().history.back().step() == 57);
}

TEST_CASE("a pause that cannot be written down is none, and one that ends ends") {
  Parts parts;
  std::string notice;
  parts.disk = kFull;
  const auto refused = parts.keeper.Pause(true, &notice);
  CHECK(absl::IsResourceExhausted(refused.status()));
  CHECK_FALSE(parts.keeper.paused());
  parts.disk = absl::OkStatus();
  CHECK(*parts.keeper.Pause(true, &notice));
  CHECK(parts.written.back().paused);
  CHECK_FALSE(*parts.keeper.Pause(true, &notice));
  CHECK(parts.written.size() == 2);
  CHECK(notice.empty());

  parts.disk = kFull;
  CHECK(*parts.keeper.Pause(false, &notice));
  CHECK_FALSE(parts.keeper.paused());
  CHECK_THAT(notice, Catch::Contains("paused again after a restart"));
  // It is tried again, until it is written down.
  parts.disk = absl::OkStatus();
  CHECK_FALSE(*parts.keeper.Pause(false, nullptr));
  CHECK(parts.written.size() == 4);
  CHECK_FALSE(parts.written.back().paused);
  CHECK_FALSE(*parts.keeper.Pause(false, nullptr));
  CHECK(parts.written.size() == 4);
}

TEST_CASE("groups are what they were where a policy cannot be written down") {
  Parts parts;
  parts.disk = kFull;
  const absl::Status refused = parts.keeper.SetSlowPolicy("g", ring::SlowPolicy::kSkip, 5);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("group g is as it was"));
  CHECK_FALSE(parts.keeper.SlowPolicyOf("g"));
  parts.disk = absl::OkStatus();
  REQUIRE(parts.keeper.SetSlowPolicy("g", ring::SlowPolicy::kSkip, 5).ok());
  CHECK(parts.keeper.SlowPolicyOf("g")->second == 5);
  CHECK(parts.written.back().slow_policies.contains("g"));
}

TEST_CASE("complete groups are written down where they have changed") {
  Parts parts;
  parts.keeper.KeepCompleteGroups({"ranks"});
  parts.keeper.KeepCompleteGroups({"ranks"});
  REQUIRE(parts.written.size() == 1);
  CHECK(parts.written[0].complete_groups == std::set<std::string>{"ranks"});
  CHECK(parts.keeper.complete_groups() == std::set<std::string>{"ranks"});
}

TEST_CASE("of a pipeline that is deleted nothing is written, until it is kept again") {
  Parts parts;
  parts.keeper.Retire(true);
  CHECK(absl::IsNotFound(parts.keeper.Pause(true, nullptr).status()));
  CHECK(absl::IsNotFound(parts.keeper.SetSlowPolicy("g", ring::SlowPolicy::kSkip, 5)));
  parts.keeper.KeepState();
  parts.keeper.KeepCompleteGroups({"ranks"});
  CHECK(parts.written.empty());
  parts.keeper.Retire(false);
  parts.keeper.KeepState();
  REQUIRE(parts.written.size() == 1);
  CHECK(parts.written[0].complete_groups == std::set<std::string>{"ranks"});
}

}  // namespace
}  // namespace penstock
