// From a spec's `ring { expand { … } }` to what the device computes.
//
// Threads:  no state.
// Limits:   one expansion a tensor.
#pragma once

#include <optional>
#include <vector>

#include "cuda/expansion.h"
#include "penstock/v1/pipeline.pb.h"
#include "ring/status.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

// One for each tensor, or none. kInvalidArgument names the feature and what is wrong with it.
ring::Status ReadExpansions(const v1::RingOptions& options, const std::vector<BatchTensor>& tensors,
                            std::vector<std::optional<cuda::Expansion>>* out);

}  // namespace penstock
