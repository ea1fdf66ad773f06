// The rows of batches, or of any elements with a first axis, as elements: what unbatch and rebatch share.
//
// Threads: one thread, while a plan is made; what RowsOf() gives is as any SplitOp.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/section/split_op.h"

namespace penstock {

// The elements of batches come back as they were, without a copy; other elements are cut up by a section. InvalidArgument for features
// without an axis.
absl::Status AddUnbatch(PlanBuilder& plan);

// The rows of elements of that kind; null where a feature has none.
std::unique_ptr<SplitOp> RowsOf(const Signature& signature);

}  // namespace penstock
