// The rows of batches, or of any elements with a first axis, as elements: what unbatch and rebatch
// share.
//
// Threads: one thread, while a plan is made; what RowsOf() gives is as any SplitOp.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "server/engine/plan/plan_builder.h"
#include "server/engine/section/split_op.h"

namespace penstock {

// The elements of batches come back as they were, without a copy; other elements are cut up by a
// section. InvalidArgument for features without an axis. `block_rows`: how many of those one task
// takes together; absent: as many as their types say are little work.
absl::Status AddUnbatch(PlanBuilder& plan, std::optional<uint32_t> block_rows = std::nullopt);

// The rows of elements of that kind; null where a feature has none.
std::unique_ptr<SplitOp> RowsOf(const Signature& signature,
                                std::optional<uint32_t> block_rows = std::nullopt);

}  // namespace penstock
