// Looks at every pipeline a few times a second and remembers the last minutes: what top, the status
// page and the metrics tell comes from here, and events that nobody but a look notices.
//
// Threads:  made and destroyed on the event loop's; everything else from any thread.
// Owns:     its history.
// Limits:   kKept looks of each pipeline.
// Cost:     some microseconds for each pipeline and look.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "penstock/v1/control.pb.h"
#include "server/service/pipeline/pipeline_table.h"
#include "server/service/socket/event_loop.h"
#include "server/service/watch/analysis.h"

namespace penstock {

// One second of a pipeline, for charts.
struct SecondOfPipeline {
  double rows_per_s = 0;
  double read_bytes_per_s = 0;
  double busy = 0;
  double blocked = 0;
  double starved = 0;
};

class Monitor {
 public:
  static constexpr size_t kLooksPerSecond = 4;
  static constexpr size_t kSecondsKept = 300;
  // What an analysis looks back on.
  static constexpr size_t kLooksBack = 5 * kLooksPerSecond;

  // All must outlive it. `processors`: those that workers may use.
  Monitor(EventLoop& loop, const PipelineTable& table, int processors);
  ~Monitor();

  // The pipeline's counters now, with what is known of its last seconds.
  v1::PipelineStats Stats(const Pipeline& pipeline) const;
  // Oldest first; empty for a pipeline that is not known.
  std::vector<SecondOfPipeline> History(const std::string& pipeline) const;

  // Takes a look; the loop's timer does this by itself.
  void LookAtAll(int64_t now_ns);

 private:
  using Consumer = std::pair<uint64_t, uint32_t>;  // its stream's ordinal, and its number there
  struct ConsumerLooks {
    std::deque<bool> empty;
    std::deque<uint64_t> positions;
  };
  struct Known {
    std::deque<Look> looks;  // kLooksBack + 1 at most
    std::deque<SecondOfPipeline> seconds;
    std::map<Consumer, ConsumerLooks> consumers;
    size_t looks_taken = 0;
    // What was told to those who listen to events.
    v1::PipelineState state = v1::PIPELINE_STATE_UNSPECIFIED;
    uint64_t skipped = 0;
    std::string shared;
    bool current = false;
  };

  void Arm();
  static void Add(const Look& look, int processors, Known* known);
  // Tells of an end, a failure, damaged places that were skipped, and work that is done for
  // several.
  void Tell(const Pipeline& pipeline, const v1::PipelineStats& stats, Known* known);
  void TellOfSharing(const v1::PipelineStats& stats, Known* known);

  EventLoop& loop_;
  const PipelineTable& table_;
  const int processors_;
  EventLoop::Id timer_ = 0;
  mutable std::mutex mutex_;
  std::map<std::string, Known> known_;  // under mutex_
};

}  // namespace penstock
