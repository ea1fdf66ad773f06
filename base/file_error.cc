#include "base/file_error.h"

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace penstock {

absl::Status FileError(int error, const std::string& what) {
  if (error != ELOOP) return absl::ErrnoToStatus(error, what);
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": its symbolic links lead in a circle, or are too many"));
}

}  // namespace penstock
