// The history of a pipeline as a file: a v1::History in Protobuf's text format.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "penstock/v1/steering.pb.h"

namespace penstock::ctl {

// At most 16 MiB, and not empty. InvalidArgument with line and column.
absl::StatusOr<v1::History> ReadHistoryFile(const std::string& path);

}  // namespace penstock::ctl
