// What helpers bring to a pipeline, and what more of them would: the one place that says it, for
// explain, top, the status page and autotune.
//
// Threads: safe from any thread.
#pragma once

#include "server/service/watch/analysis.h"

namespace penstock {

// Fills in helper_gain and missing_helpers. `wait`: the share of its time in which the consumer
// that waits most found nothing ready; negative where nobody knows. REQUIRES: the analysis has the
// rate and the bottleneck.
void AddHelperGain(const Look& from, const Look& to, double wait, v1::Analysis* analysis);

}  // namespace penstock
