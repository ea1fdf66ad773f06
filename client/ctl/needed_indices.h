// Indices that a spec's global shuffles need, built where somebody sees it happen.
#pragma once

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

// Builds those that are not there yet, with a progress bar on stderr. What cannot be built is left to the daemon, which says why.
void BuildNeededIndices(const v1::ValidatePipelineResponse& validated);

}  // namespace penstock::ctl
