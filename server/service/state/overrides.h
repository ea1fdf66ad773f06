// The command line's changes to a spec: a source's files, named constants, workers; and the
// directory that relative paths start from.
//
// Threads: safe from any thread.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/control.pb.h"
#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// Parses the source if it is text, applies its overrides and makes its paths absolute.
// InvalidArgument when an override fits no stage or several (which are then listed), or a value
// does not fit its constant.
absl::StatusOr<v1::PipelineSpec> ResolveSource(const v1::SpecSource& source);

// The overrides alone. A spec that is refused may be half changed.
absl::Status ApplyOverrides(const v1::SpecOverrides& overrides, v1::PipelineSpec* spec);

}  // namespace penstock
