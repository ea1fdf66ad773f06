// What a stage's expressions hold of files that are read when the plan is made
// (server/expr/file_arguments.h).
//
// Threads:  any; no state.
#pragma once

#include "absl/status/status.h"
#include "base/file.h"
#include "penstock/v1/pipeline.pb.h"

namespace penstock {

// Writes into the expressions what the files hold that they name. Errors: those of reading them.
absl::Status GiveContents(v1::Stage* stage, FileSystem& files);

// Leaves what the files hold, but not where they lie.
void StripFileArguments(v1::Stage* stage);

}  // namespace penstock
