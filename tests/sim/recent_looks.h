// What a tuner sees of a clocked pipeline: a look every second, analysed over the last five.
//
// Threads:  one.
#pragma once

#include <deque>

#include "server/service/watch/analysis.h"
#include "tests/sim/clocked_pipeline.h"

namespace penstock::test {

class RecentLooks {
 public:
  explicit RecentLooks(ClockedPipeline& pipeline)
      : pipeline_(pipeline), looks_{pipeline.TakeLook()} {}

  // The pipeline goes on for a second.
  v1::PipelineStats NextSecond() {
    pipeline_.RunFor(1);
    looks_.push_back(pipeline_.TakeLook());
    if (looks_.size() > kSeconds + 1) looks_.pop_front();
    v1::PipelineStats stats = looks_.back().stats;
    *stats.mutable_analysis() = Analyse(looks_.front(), looks_.back(), kProcessors);
    return stats;
  }

 private:
  static constexpr size_t kSeconds = 5;
  static constexpr int kProcessors = 64;

  ClockedPipeline& pipeline_;
  std::deque<Look> looks_;
};

}  // namespace penstock::test
