// What the system says of a file, as a status: as absl's, but what absl knows no code for has one.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace penstock {

// `what` names the path. ELOOP: FailedPrecondition, since somebody has to mend the links.
absl::Status FileError(int error, const std::string& what);

}  // namespace penstock
