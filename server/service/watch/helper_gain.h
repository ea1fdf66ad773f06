// What helpers bring to a pipeline, and what more of them would: the one place that says it. The
// analysis' sentence ends with it, and explain and autotune take it from there.
//
// Threads: safe from any thread.
#pragma once

#include <string>

#include "server/service/watch/analysis.h"

namespace penstock {

// "helpers: 2 make 48 % of the steps; …"; "" where there are none, or nobody reads. `wait`: the
// share of its time in which the consumer that waits most found nothing ready; negative where
// nobody knows. REQUIRES: the analysis has the rate and the bottleneck.
std::string HelperGain(const Look& from, const Look& to, double wait, const v1::Analysis& analysis);

// That part of an analysis' sentence, or "".
std::string HelperGainIn(const std::string& sentence);

}  // namespace penstock
