// Batches as files that numpy.load reads: an uncompressed zip of one .npy for each tensor (NumPy's
// format, version 1.0: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html).
//
// Threads: safe from any thread.
// Cost:    one copy of the batch in memory while it is written.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "penstock.hpp"

namespace penstock::ctl {

// The file stands complete at `path` afterwards, or is not there.
absl::Status WriteNpz(const std::string& path, const Batch& batch);

}  // namespace penstock::ctl
