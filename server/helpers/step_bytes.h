// How much of a slot a step takes: what both sides of a connection must agree on before bytes are
// moved.
//
// Threads:  functions without state.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "penstock/v1/helpers.pb.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

// Bytes that a step of so many rows in memory has of each tensor; 0 for those that are not fixed.
std::vector<uint64_t> FixedBytes(const std::vector<BatchTensor>& tensors, uint32_t shape_rows);

// Of the slot's variable memory, up to the end of the last part.
uint64_t VariableBytes(const std::vector<TensorExtent>& extents);

// What goes in front of a step's bytes.
v1::HelperStep DescribeStep(const StepInfo& info);

// Whether that is the asker's step, and what it says of the slot's variable memory lies inside of
// it: then `*extents` are its parts. FailedPrecondition where the helper is at another place of
// another stream; DataLoss for what no helper says.
absl::Status CheckStep(const v1::HelperStep& told, const StepInfo& own,
                       const std::vector<BatchTensor>& tensors, uint64_t variable_room,
                       uint64_t data_bytes, std::vector<TensorExtent>* extents);

}  // namespace penstock
