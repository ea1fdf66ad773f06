// The daemon's counters in Prometheus' text format (version 0.0.4).
//
// Threads: safe from any thread.
// Limits:  one series for each stage and group of a pipeline, none for a single consumer: what
//          comes and goes would fill the database of whoever collects.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/file/shared_maps.h"
#include "penstock/v1/control.pb.h"
#include "server/service/socket/access.h"

namespace penstock {

// Of the process, by /proc; zeros where that cannot be read.
struct ProcessFigures {
  double cpu_seconds = 0;
  uint64_t resident_bytes = 0;
  uint64_t open_descriptors = 0;
  double start_time_s = 0;  // since 1970
};
ProcessFigures ReadProcessFigures();

// `returning`: pipelines that have not come back yet.
std::string MetricsText(const std::vector<v1::PipelineStats>& pipelines, size_t returning,
                        const Refusals& refusals, const SharedMaps::Use& maps,
                        const ProcessFigures& process);

}  // namespace penstock
