// The daemon's settings: read, checked and completed with their defaults.
//
// Threads: safe from any thread.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "penstock/v1/server.pb.h"

namespace penstock {

// Parses and completes; InvalidArgument names file, line, column, the field, its range and what was
// found.
absl::StatusOr<v1::DaemonConfig> ParseDaemonConfig(absl::string_view text,
                                                   absl::string_view file_name);

// The same for the file at `path`; NotFound and PermissionDenied as the file system says.
absl::StatusOr<v1::DaemonConfig> ReadDaemonConfig(const std::string& path);

// Fills in the default of every field that is not set, then checks all of them.
absl::Status CompleteDaemonConfig(v1::DaemonConfig* config);

}  // namespace penstock
