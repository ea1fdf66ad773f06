// The files that a user's patterns name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::ctl {

// The regular files that match any of the patterns (`*`, `?`, `[...]`), each once, in the byte
// order of their paths. NotFound names a pattern that matches nothing.
absl::StatusOr<std::vector<std::string>> MatchFiles(const std::vector<std::string>& patterns);

}  // namespace penstock::ctl
