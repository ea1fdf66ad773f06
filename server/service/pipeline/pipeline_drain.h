// The waiting of whoever drains a pipeline, until its consumers have taken all that it has begun.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "server/service/pipeline/pipeline_streams.h"

namespace penstock {

// REQUIRES: the pipeline of that name is paused. DeadlineExceeded names who has not taken all;
// Cancelled: `cancelled`, which is looked at again and again; Unavailable: there is nothing to wait
// for.
absl::StatusOr<DrainedAt> WaitUntilTaken(const std::string& name, const PipelineStreams& streams,
                                         absl::Duration timeout,
                                         const std::function<bool()>& cancelled);

}  // namespace penstock
