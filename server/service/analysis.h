// Where a pipeline's time went between two looks, and what would help: arithmetic, no clock.
//
// Threads: safe from any thread.
#pragma once

#include "penstock/v1/control.pb.h"

namespace penstock {

// What an analysis looks back on. Counters of the same pipeline, `from` before `to`.
struct Look {
  int64_t at_ns = 0;
  v1::PipelineStats stats;
};

// `processors`: those that workers may use.
v1::Analysis Analyse(const Look& from, const Look& to, int processors);

}  // namespace penstock
