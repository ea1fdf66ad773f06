// Plans whose steps are whole batches, as elements: what a function has made of a batch, or batches
// that an op behind `batch` has shuffled, kept or repeated. The hosts of a world divide their rows
// behind all that was computed.
//
// Threads: functions without state.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/engine/plan/built_plan.h"
#include "server/engine/tensor/world.h"

namespace penstock {

// The rows of a full batch, of which the last stage gives one in each element; nullopt where that
// is not known: an op stands behind the last batch op that gives other elements than one for each
// batch.
std::optional<int64_t> BatchSizeOfElements(const v1::PipelineSpec& spec);

// Has the plan give one host's rows of each element alone (compute/own_rows.h). False, with nothing
// changed, where a step is no whole batch, or no feature has its rows; InvalidArgument where the
// batches have fewer rows than there are hosts. REQUIRES: the dataset is not batched.
absl::StatusOr<bool> DivideWholeBatches(World world, BuiltPlan* built);

// What a world says of batches that are too small for it.
absl::Status TooManyHosts(World world, int64_t batch_rows);

}  // namespace penstock
