// Cursors in files, as `penstock run --cursor-out` writes them and --resume reads them.
//
// Threads:  functions without state.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace penstock::ctl {

absl::StatusOr<std::string> ReadCursorFile(const std::string& path);

// Whole or not at all: by way of a temporary file in the same folder.
absl::Status WriteCursorFile(const std::string& path, std::string_view cursor);

}  // namespace penstock::ctl
