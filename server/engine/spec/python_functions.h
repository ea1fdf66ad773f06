// Which Python functions a spec names, in whatever ops.
//
// Threads: functions without state.
// Cost:    a walk through the message, by reflection: for the control plane.
#pragma once

#include <set>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "google/protobuf/message.h"

namespace penstock {

namespace v1 {
class PythonFunction;
}  // namespace v1

// Calls `visit` with those of a message, and of all messages inside of it, in their order: of a
// spec, a stage, a change.
void VisitPythonFunctions(const google::protobuf::Message& message,
                          absl::FunctionRef<void(const v1::PythonFunction&)> visit);

// A path and a code, as PythonFunction has them.
using PythonFunctions = std::set<std::pair<std::string, std::string>>;

// Adds those that VisitPythonFunctions finds.
void AddPythonFunctions(const google::protobuf::Message& message, PythonFunctions* found);

}  // namespace penstock
