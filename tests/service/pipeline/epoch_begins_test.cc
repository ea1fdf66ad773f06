// A change that waits for an epoch: no step of that epoch is seen before it is written down where
// it began.

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "server/service/pipeline/pipeline.h"
#include "tests/service/counting.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/shards.h"

namespace penstock {
namespace {

TEST_CASE("an epoch whose beginning cannot be written down waits until it can be") {
  const test::ScratchFolder folder;
  test::WriteShard(folder / "n.tfrecord", 0, 16);
  v1::PipelineSpec spec = test::CountingSpec(folder / "n.tfrecord", "p", "stage { repeat {} }");
  spec.mutable_ring()->set_slots(16);
  std::atomic<bool> fails{false};
  std::mutex mutex;
  std::vector<KeptState> kept;
  std::vector<std::string> told;
  PipelineOptions options;
  options.state.paused = true;
  options.state_path = "/state/p.pipeline";
  options.write_state = [&](const KeptState& state) -> absl::Status {
    if (fails) return absl::ResourceExhaustedError("disk full");
    std::lock_guard<std::mutex> lock(mutex);
    kept.push_back(state);
    return absl::OkStatus();
  };
  options.on_event = [&](const v1::Event& event) {
    std::lock_guard<std::mutex> lock(mutex);
    told.push_back(event.text());
  };
  const auto created = Pipeline::Create(spec, options, LocalFileSystem());
  INFO(created.status().ToString());
  REQUIRE(created.ok());
  Pipeline& pipeline = **created;
  RequestedChange requested;
  requested.at_next_epoch = true;
  *requested.change.mutable_stage() = pipeline.LastSpec().stage();
  requested.change.mutable_stage(2)->mutable_batch()->set_batch_size(2);
  const auto change = pipeline.Update(requested);
  INFO(change.status().ToString());
  REQUIRE(change.ok());
  CHECK(change->epoch() == 1);
  fails = true;
  // It goes on, though that cannot be written down either.
  std::string notice;
  REQUIRE(pipeline.Pause(false, &notice).ok());

  test::Until([&] { return pipeline.Stats().has_oldest_write(); });
  CHECK(pipeline.Stats().oldest_write().file() == "/state/p.pipeline");
  CHECK(pipeline.Stats().steps() == 4);
  RequestedChange withdraw;
  withdraw.withdraw = true;
  CHECK(absl::StrContains(pipeline.Update(withdraw).status().message(), "is just being begun"));
  // Others tell of the end of the pause meanwhile.
  test::Until([&] {
    std::lock_guard<std::mutex> lock(mutex);
    return std::any_of(told.begin(), told.end(), [](const std::string& text) {
      return absl::StrContains(text, "epoch 1 waits at step 4");
    });
  });
  {
    std::lock_guard<std::mutex> lock(mutex);
    CHECK(kept.back().history.back().step() == 0);
  }
  fails = false;
  test::Until([&] { return pipeline.Stats().steps() > 4; });
  {
    std::lock_guard<std::mutex> lock(mutex);
    CHECK(kept.back().history.back().step() == 4);
    CHECK(kept.back().history.back().epoch() == 1);
  }
  CHECK_FALSE(pipeline.Stats().has_oldest_write());
  pipeline.Close(absl::CancelledError("the end"));
}

// A paused pipeline of four steps an epoch, that an earlier daemon may have handed out up to a
// step, and what it writes down.
struct Returned {
  explicit Returned(uint64_t first_free) {
    test::WriteShard(folder / "n.tfrecord", 0, 16);
    v1::PipelineSpec spec = test::CountingSpec(folder / "n.tfrecord", "p", "stage { repeat {} }");
    spec.mutable_ring()->set_slots(24);
    PipelineOptions options;
    options.state.paused = true;
    options.high_water =
        HighWater::Create({.pipeline = "p", .limit = first_free, .is_of_before = true});
    options.write_state = [this](const KeptState& state) -> absl::Status {
      if (fails) return absl::ResourceExhaustedError("disk full");
      std::lock_guard<std::mutex> lock(mutex);
      kept = state;
      return absl::OkStatus();
    };
    const auto created = Pipeline::Create(spec, options, LocalFileSystem());
    INFO(created.status().ToString());
    REQUIRE(created.ok());
    pipeline = *created;
  }
  ~Returned() { pipeline->Close(absl::CancelledError("the end")); }

  absl::StatusOr<v1::Change> AtNextEpoch(std::string* notice) {
    RequestedChange requested;
    requested.at_next_epoch = true;
    *requested.change.mutable_stage() = pipeline->LastSpec().stage();
    requested.change.mutable_stage(2)->mutable_batch()->set_batch_size(2);
    return pipeline->Update(requested, notice);
  }
  v1::Change Last() {
    std::lock_guard<std::mutex> lock(mutex);
    return kept.history.back();
  }

  const test::ScratchFolder folder;
  std::atomic<bool> fails{false};
  std::mutex mutex;
  KeptState kept;
  std::shared_ptr<Pipeline> pipeline;
};

TEST_CASE("behind what may have been taken a change waits for the first epoch that begins there") {
  const struct {
    uint64_t first_free, epoch, begins;
  } cases[] = {{9, 3, 12}, {11, 3, 12}, {12, 3, 12}, {13, 4, 16}};
  for (const auto& c : cases) {
    INFO("first free " << c.first_free);
    Returned returned(c.first_free);
    std::string notice;
    const auto change = returned.AtNextEpoch(&notice);
    INFO(change.status().ToString());
    REQUIRE(change.ok());
    CHECK(FromWhere(*change) == absl::StrCat("the first epoch behind step ", c.first_free - 1));
    CHECK(absl::StrContains(notice, "before the daemon was started again"));
    CHECK(returned.Last().step() == c.first_free);
    // No step behind is seen before it is written down which epoch that is.
    returned.fails = true;
    REQUIRE(returned.pipeline->Pause(false, &notice).ok());
    test::Until([&] { return returned.pipeline->Stats().has_oldest_write(); });
    CHECK(returned.pipeline->Stats().steps() == c.first_free);
    CHECK(returned.Last().epoch() == 0);
    returned.fails = false;
    test::Until([&] { return returned.pipeline->Stats().steps() > c.begins; });
    CHECK(returned.Last().epoch() == c.epoch);
    CHECK(returned.Last().step() == c.begins);
  }
}

TEST_CASE(
    "a change that waits for any epoch is withdrawn, and the stream goes on beyond its step") {
  Returned returned(10);
  std::string notice;
  REQUIRE(returned.AtNextEpoch(&notice).ok());
  RequestedChange withdraw;
  withdraw.withdraw = true;
  const auto withdrawn = returned.pipeline->Update(withdraw);
  INFO(withdrawn.status().ToString());
  REQUIRE(withdrawn.ok());
  REQUIRE(returned.pipeline->Pause(false, &notice).ok());
  test::Until([&] { return returned.pipeline->Stats().steps() >= 24; });
  CHECK(returned.Last().has_withdrawn_unix_ms());
}

TEST_CASE("a change that waits for its step is followed by one for an epoch") {
  Returned returned(0);
  RequestedChange skip;
  skip.change.set_skip_steps(1);
  skip.step = 6;
  REQUIRE(returned.pipeline->Update(skip).ok());
  std::string notice;
  const auto change = returned.AtNextEpoch(&notice);
  INFO(change.status().ToString());
  REQUIRE(change.ok());
  CHECK(FromWhere(*change) == "the first epoch behind step 6");
  CHECK(absl::StrContains(notice, "a change holds from step 6 on"));
  REQUIRE(returned.pipeline->Pause(false, &notice).ok());
  // Step 6 has the records of step 7, the last one of epoch 1.
  test::Until([&] { return returned.pipeline->Stats().steps() > 7; });
  CHECK(returned.Last().epoch() == 2);
  CHECK(returned.Last().step() == 7);
}

}  // namespace
}  // namespace penstock
