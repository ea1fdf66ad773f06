// The rows of batches, or of any elements with a first axis, as elements: what unbatch and rebatch share.
//
// Threads: one thread, while a plan is made.
#pragma once

#include "absl/status/status.h"
#include "server/engine/plan_builder.h"

namespace penstock {

// The elements of batches come back as they were, without a copy; other elements are cut up by a segment. InvalidArgument for features
// without an axis.
absl::Status AddUnbatch(PlanBuilder& plan);

}  // namespace penstock
