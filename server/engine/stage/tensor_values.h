// The tensors that a spec gives by their values or by files: what from_tensors and
// from_tensor_slices share.
//
// Threads: one thread, while a plan is made.
// Limits:  what the spec holds; of files only the headers are read.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "google/protobuf/repeated_ptr_field.h"
#include "penstock/v1/ops.pb.h"
#include "server/engine/plan/plan_builder.h"

namespace penstock {

// Makes the tensors, or the arrays of the .npz file, the source of the plan: whole as one element,
// or row by row.
absl::Status PlanTensors(const google::protobuf::RepeatedPtrField<v1::TensorValues>& tensors,
                         const std::string& npz, bool slices, PlanBuilder& plan);

}  // namespace penstock
