// The spec that samples are made for, written where its maker can use it.
//
// Threads:  safe from any thread.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock::samples {

// Writes config/pipelines/SAMPLE.textproto to `path`, with the files of `directory` in place of those of samples/SAMPLE. InvalidArgument for
// a sample that has no spec.
absl::Status WriteSpec(const std::string& sample, const std::string& directory,
                       const std::string& path);

}  // namespace penstock::samples
