// Indices that a spec's global shuffles need, built where somebody sees it happen.
#pragma once

#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

// Whether all files that the spec's sources read lie at addresses, so that there is no index to
// build here. False where that is not plain to see.
bool ReadsOnlyAddresses(const v1::SpecSource& source);

// Builds those that are not there yet, with a progress bar on stderr. What cannot be built is left
// to the daemon, which says why.
void BuildNeededIndices(const v1::ValidatePipelineResponse& validated);

}  // namespace penstock::ctl
