// What the status page shows, as JSON.
//
// Threads: safe from any thread.
#pragma once

#include <string>

#include "server/service/monitor.h"
#include "server/service/pipeline_table.h"

namespace penstock {

// {"release": …, "pipelines": [{"stats": PipelineStats, "history": {"rows_per_s": […], …},
// "batch": [{"name": …, "type": …, "shape": …}], "skipped": {"count": …, "places": […]}}]}
std::string StatusJson(const PipelineTable& table, const Monitor& monitor);

}  // namespace penstock
