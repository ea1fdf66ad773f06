// Seeds that a spec leaves open: each plan of it draws others, so that what one says of a step is
// true of no other run.
//
// Threads: functions without state.
#pragma once

#include "absl/status/status.h"
#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// InvalidArgument with the stage and the field of the first seed that `given` leaves open.
// `planned`: Plan::spec() of a plan of it.
absl::Status CheckSeedsAreGiven(const v1::PipelineSpec& given, const v1::PipelineSpec& planned);

}  // namespace penstock
