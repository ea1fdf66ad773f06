// The names of pipelines that somebody may not see, in what is told of one that may be seen.
//
// Threads: any; no state.
#pragma once

#include <functional>
#include <string>

#include "penstock/v1/control.pb.h"

namespace penstock {

// Leaves out the names of others for which `visible` is false; null: all are visible.
void HideOthers(const std::function<bool(const std::string& name)>& visible,
                v1::PipelineStats* stats);

}  // namespace penstock
