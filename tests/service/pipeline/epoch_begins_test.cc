// A change that waits for an epoch: no step of that epoch is seen before it is written down where it began.

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/strings/match.h"
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
  {
    std::lock_guard<std::mutex> lock(mutex);
    CHECK(absl::StrContains(told.back(), "epoch 1 waits at step 4"));
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

}  // namespace
}  // namespace penstock
