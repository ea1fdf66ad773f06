// What autotune makes of slots and read-ahead on a clock of its own.

#include <algorithm>
#include <cmath>
#include <string>

#include "server/service/tune/depth_tuner.h"
#include "server/service/tune/read_ahead_tuner.h"
#include "server/service/watch/analysis.h"
#include "tests/sim/clocked_pipeline.h"
#include "tests/sim/recent_looks.h"
#include "tests/support/catch.h"

namespace penstock::test {
namespace {

// Minutes of a tuner that looks once a second; returns the slots at the end.
uint32_t Tune(ClockedPipeline& pipeline, DepthTuner& tuner, uint32_t slots, uint32_t most,
              int seconds) {
  RecentLooks looks(pipeline);
  for (int second = 0; second < seconds; ++second) {
    slots = tuner.Look(looks.NextSecond(), slots, most);
    pipeline.SetSlots(slots);
  }
  return slots;
}

double WaitOf(ClockedPipeline& pipeline, double seconds) {
  const double waited = pipeline.trainer_waited_s();
  pipeline.RunFor(seconds);
  return (pipeline.trainer_waited_s() - waited) / seconds;
}

// Two workers that make a step in 4.2 ms, but for heavy ones, and a trainer that takes 7 ms.
ClockedOptions Uneven(int heavy_every, double heavy_factor) {
  ClockedOptions options;
  options.stages = {{"read", 20}, {"decode", 1000}, {"batch", 30}};
  options.workers = 2;
  options.trainer_us = 7000;
  options.heavy_every = heavy_every;
  options.heavy_factor = heavy_factor;
  return options;
}

TEST_CASE("a ring becomes as deep as uneven batches need") {
  const struct {
    int heavy_every;
    double heavy_factor;
    uint32_t most;
    bool is_enough;
  } kCases[] = {{20, 10, 64, true}, {40, 16, 64, true}, {10, 5, 64, true}, {40, 16, 7, false}};
  for (const auto& one : kCases) {
    CAPTURE(one.heavy_every, one.heavy_factor, one.most);
    ClockedPipeline pipeline(Uneven(one.heavy_every, one.heavy_factor));
    DepthTuner tuner;
    const uint32_t slots = Tune(pipeline, tuner, 4, one.most, 240);
    CAPTURE(tuner.reason(), slots);
    CHECK(slots > 4);
    CHECK(slots <= one.most);
    const double wait = WaitOf(pipeline, 60);
    if (!one.is_enough) {
      CHECK(slots == one.most);
      CHECK(tuner.reason().find("as many as there may be") != std::string::npos);
      continue;
    }
    CHECK(wait < 0.03);
    // The step before was not enough.
    ClockedPipeline shallower(Uneven(one.heavy_every, one.heavy_factor));
    shallower.SetSlots(static_cast<uint32_t>(slots / 1.5));
    shallower.RunFor(2);
    CHECK(WaitOf(shallower, 60) > 0.01);
  }
}

TEST_CASE("a ring stays as it is where depth is not what is missing") {
  ClockedOptions slow = Uneven(0, 1);
  slow.trainer_us = 1000;  // waits for every step
  ClockedOptions quick = Uneven(0, 1);
  quick.trainer_us = 20'000;  // waits for none
  for (const ClockedOptions& options : {slow, quick}) {
    ClockedPipeline pipeline(options);
    DepthTuner tuner;
    CHECK(Tune(pipeline, tuner, 4, 64, 120) == 4);
    CHECK(tuner.changes() == 0);
  }
}

TEST_CASE("a ring that depth does not help rests longer each time") {
  v1::PipelineStats stats;
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.add_consumers();
  stats.mutable_analysis()->set_seconds(5);
  stats.mutable_analysis()->set_trainer_wait(0.5);
  stats.mutable_analysis()->set_blocked(0.5);
  DepthTuner tuner;
  uint32_t slots = 4;
  for (int i = 0; i < 300; ++i) slots = tuner.Look(stats, slots, 64);
  // 30, 60, 120 looks, and what each needs to settle.
  CHECK(tuner.changes() == 4);
  CHECK(slots > 4);
}

// A disk by Little's law: what is asked for ahead comes after its latency, and no more than it can
// carry.
struct Disk {
  double latency_s = 0;
  double bytes_per_s = 0;

  double Speed(int64_t ahead) const {
    return std::min(bytes_per_s, static_cast<double>(ahead) / latency_s);
  }
};

struct Reading {
  int64_t ahead = 0;
  double wait = 0;
  uint64_t changes = 0;
};

// A trainer that takes `demand` bytes a second from a source with one worker, whose reads are all
// that costs time.
Reading Read(const Disk& disk, double demand, int64_t ahead, int64_t most, int seconds) {
  ReadAheadTuner tuner;
  v1::PipelineStats stats;
  stats.set_state(v1::PIPELINE_STATE_RUNNING);
  stats.set_workers(1);
  stats.add_consumers();
  stats.mutable_analysis()->set_seconds(5);
  v1::StageStats* source = stats.add_stages();
  Reading reading;
  for (int second = 0; second < seconds; ++second) {
    const double speed = disk.Speed(ahead);
    const double read = std::min(speed, demand);
    reading.wait = 1 - read / demand;
    stats.set_running_ns(stats.running_ns() + 1'000'000'000);
    stats.mutable_analysis()->set_trainer_wait(reading.wait);
    source->set_read_bytes(source->read_bytes() + static_cast<uint64_t>(read));
    source->set_read_ns(source->read_ns() + static_cast<uint64_t>(read / speed * 1e9));
    ahead = tuner.Look(stats, 0, ahead, most);
    CHECK(ahead <= most);
  }
  reading.ahead = ahead;
  reading.changes = tuner.changes();
  return reading;
}

TEST_CASE("a source reads as far ahead as the disk's latency needs") {
  constexpr int64_t kMost = int64_t{64} << 20;
  constexpr int64_t kBegin = ReadAheadTuner::kLeast;
  const struct {
    Disk disk;
    double demand;
    int64_t most;
  } kCases[] = {
      {{0.010, 2e9}, 400e6, kMost},  // 4 MB on their way
      {{0.050, 1e9}, 500e6, kMost},  // 25 MB
      {{0.001, 2e9}, 1500e6, kMost},
  };
  for (const auto& one : kCases) {
    const double needed = one.disk.latency_s * one.demand;
    CAPTURE(one.disk.latency_s, one.demand);
    const Reading reading = Read(one.disk, one.demand, kBegin, one.most, 120);
    CHECK(reading.wait < 0.02);
    CHECK(static_cast<double>(reading.ahead) >= 0.98 * needed);
    CHECK(static_cast<double>(reading.ahead) <= std::max(2.0 * needed, 1.0 * kBegin));
  }
  // No further than it may.
  CHECK(Read({0.050, 1e9}, 500e6, kBegin, 4 << 20, 120).ahead == 4 << 20);
  CHECK(Read({0.050, 1e9}, 500e6, 16 << 20, 4 << 20, 120).ahead == 4 << 20);
}

TEST_CASE(
    "a source goes back where the disk gives what it can, and one that nobody waits for stays") {
  constexpr int64_t kMost = int64_t{64} << 20;
  const Reading worn = Read({0.0001, 50e6}, 400e6, 1 << 20, kMost, 60);
  CHECK(worn.ahead == 1 << 20);
  CHECK(worn.changes == 2);
  CHECK(worn.wait > 0.5);
  const Reading quick = Read({0.0001, 2e9}, 100e6, 1 << 20, kMost, 60);
  CHECK(quick.ahead == 1 << 20);
  CHECK(quick.changes == 0);
}

}  // namespace
}  // namespace penstock::test
