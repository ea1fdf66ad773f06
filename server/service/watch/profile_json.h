// What workers did, as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "server/engine/run/work_trace.h"
#include "server/service/watch/consumer_waits.h"

namespace penstock {

// The trace event format: a thread for each worker; blocks with their steps and, in them, what each
// stage took and each function of a map, one behind the other; a thread for each process of a
// Python function's; and one for each consumer, with the times in which it waited for a batch.
std::string ProfileJson(const std::string& pipeline, const std::vector<std::string>& stages,
                        const WorkSpans& spans, const std::vector<ConsumerWait>& waits = {});

}  // namespace penstock
