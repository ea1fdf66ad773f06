// Constants of expressions whose values are in a file, and all constants of a stage.
//
// Threads: any; no state.
// Limits:  kMaxConstantBytes (server/expr/graph.h) a file.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "base/file.h"
#include "penstock/v1/pipeline.pb.h"
#include "server/expr/program.h"

namespace penstock {

// The constants of the stage's op, none if it computes nothing.
std::vector<v1::Constant*> ConstantsOf(v1::Stage& stage);

// Reads the values of `constant.npy` or `constant.text_line` into `result`, with their type and
// shape, and writes what they are into `resolved`: dtype, shape and checksum. Errors name the file.
absl::Status ReadConstantFile(const v1::Constant& constant, FileSystem& files,
                              expr::NamedConstant* result, v1::Constant* resolved);

// Leaves the checksums of constants in files, but not where these lie.
void StripConstantFiles(v1::Stage* stage);

}  // namespace penstock
