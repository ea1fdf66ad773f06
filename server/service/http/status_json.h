// What the status page shows, as JSON.
//
// Threads: safe from any thread.
#pragma once

#include <string>

#include "server/service/pipeline/pipeline_table.h"
#include "server/service/tune/monitor.h"

namespace penstock {

// {"release": …, "pipelines": [{"stats": PipelineStats, "history": {"rows_per_s": […], …},
// "batch": [{"name": …, "type": …, "shape": …}], "skipped": {"count": …, "places": […]}}]}
std::string StatusJson(const PipelineTable& table, const Monitor& monitor);

}  // namespace penstock
