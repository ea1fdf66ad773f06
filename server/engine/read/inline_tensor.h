// Tensors that a spec gives by their values.
//
// Threads: any; no state.
// Limits:  what a spec holds.
#pragma once

#include "absl/status/statusor.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/read/tensor_source.h"

namespace penstock {

// Makes a tensor of the values. Without a shape it has one axis or, if it may and has one value,
// none. Messages leave out its name.
absl::StatusOr<TensorSource> ReadInlineTensor(const v1::TensorValues& values, bool may_be_scalar);

// The fields `dtype` (kInvalid where it is absent) and `shape`.
absl::StatusOr<TensorType> ReadDeclaredType(const v1::TensorValues& values);

}  // namespace penstock
