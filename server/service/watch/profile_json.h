// What workers did, as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing.
#pragma once

#include <string>
#include <vector>

#include "server/engine/run/work_trace.h"

namespace penstock {

// The trace event format: a thread for each worker; blocks with their steps and, in them, what each
// stage took, one behind the other; and a thread for each process of a Python function's.
std::string ProfileJson(const std::string& pipeline, const std::vector<std::string>& stages,
                        const WorkSpans& spans);

}  // namespace penstock
