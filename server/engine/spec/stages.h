// The stages of a spec in the order of its text, nested ones included, and their names.
//
// Threads: functions without state.
#pragma once

#include <string>
#include <vector>

#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// All stages in the order of the text, nested ones behind the op that holds them, and their names
// as messages and the command line call them (Stage.name or its default).
std::vector<v1::Stage*> AllStages(v1::PipelineSpec& spec);
std::vector<std::string> StageNames(const v1::PipelineSpec& spec);

}  // namespace penstock
