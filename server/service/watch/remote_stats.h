// What a pipeline has fetched of files at addresses, for those who look: as numbers, and as words.
//
// Threads:  any; no state.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "penstock/v1/control.pb.h"

namespace penstock {

// Nothing where the pipeline has asked for nothing at addresses.
void AddRemote(const FileSystem& files, v1::PipelineStats* stats);

// For who asks why it is slow: a sentence each; none where nothing is waited for.
void ExplainRemote(const v1::PipelineStats& stats, std::vector<std::string>* out);

}  // namespace penstock
