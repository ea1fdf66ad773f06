// The paths that a stage names, in its op's options and in the tensors and constants that those
// hold.
//
// Threads: functions without state.
#pragma once

#include <functional>
#include <string>

#include "penstock/v1/pipeline.pb.h"

namespace penstock {

enum class PathKind {
  kFiles,      // a path or glob of the files that a source reads
  kArrays,     // of a file of arrays
  kConstants,  // of a file of a constant's values, whose checksum stands beside it
  kFolder,     // of a folder in which elements are kept
};

using PathVisit = std::function<void(PathKind kind, std::string* path)>;

// Calls `visit` with each path that is set, but not with those of nested stages; one that becomes
// "" is taken out of the stage.
void VisitPaths(v1::Stage* stage, const PathVisit& visit);
// The same with those of nested stages.
void VisitAllPaths(v1::Stage* stage, const PathVisit& visit);

}  // namespace penstock
