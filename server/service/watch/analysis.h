// Where a pipeline's time went between two looks, and what would help: arithmetic, no clock.
//
// Threads: safe from any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "penstock/v1/control.pb.h"

namespace penstock {

// Workers that are busy for less of their time than this are not what anybody waits for: one more
// would change little.
inline constexpr double kBusyWorkers = 0.7;

// How often a consumer was looked at, and found waiting for a step. Counters.
struct WaitLooks {
  uint32_t id = 0;
  uint64_t looks = 0;
  uint64_t waiting = 0;
  uint64_t stream = 0;  // which numbers its consumers by itself
};

// What an analysis looks back on. Counters of the same pipeline, `from` before `to`.
struct Look {
  int64_t at_ns = 0;
  v1::PipelineStats stats;
  std::vector<WaitLooks> waits = {};
  std::vector<uint64_t> streams = {};  // those of stats.consumers()
};

// Of a stage whose rows wait for workers that its user's processes are to offer: that they do, and
// what helps; "" of any other.
std::string WaitForOffer(const v1::StageStats& stage);

// `processors`: those that workers may use; those of a NUMA node they use only, if they are fewer.
v1::Analysis Analyse(const Look& from, const Look& to, int processors);

}  // namespace penstock
