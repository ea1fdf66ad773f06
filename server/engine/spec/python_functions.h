// Which Python functions a spec names, in whatever ops: by their paths and codes.
//
// Threads: functions without state.
// Cost:    a walk through the message, by reflection: for the control plane.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "google/protobuf/message.h"

namespace penstock {

// A path and a code, as PythonFunction has them.
using PythonFunctions = std::set<std::pair<std::string, std::string>>;

// Adds those of a message, and of all messages inside of it: a spec, a stage, a change.
void AddPythonFunctions(const google::protobuf::Message& message, PythonFunctions* found);

}  // namespace penstock
