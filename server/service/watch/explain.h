// Who waits for whom, in sentences.
#pragma once

#include <string>
#include <vector>

#include "penstock/v1/control.pb.h"

namespace penstock {

// From those who are furthest from the cause to the cause itself, at least one sentence.
std::vector<std::string> Explain(const v1::PipelineStats& stats);

}  // namespace penstock
