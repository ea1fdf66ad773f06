// The files that a user's patterns name.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::ctl {

// The regular files that match any of the patterns (`*`, `?`, `[...]`), each once, in the byte
// order of their paths, without the indices that Penstock puts beside data. NotFound names a
// pattern that matches nothing, or a folder. `others` takes what is no regular file, such as
// folders and dangling links; without it they are passed over.
absl::StatusOr<std::vector<std::string>> MatchFiles(const std::vector<std::string>& patterns,
                                                    std::vector<std::string>* others = nullptr);

}  // namespace penstock::ctl
