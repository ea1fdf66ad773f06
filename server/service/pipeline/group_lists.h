// What the control plane is told of groups, and of those for whom others wait.
//
// Threads:  functions without state, safe from any thread.
#pragma once

#include <map>
#include <string>

#include "penstock/v1/control.pb.h"
#include "ring/writer.h"

namespace penstock {

// By name.
using GroupList = std::map<std::string, v1::GroupStats>;

// Adds the groups of one ring.
void AddGroups(const ring::Writer& writer, GroupList* groups);

void AddWaitedFor(const ring::Writer& writer, v1::PipelineStats* stats);

}  // namespace penstock
