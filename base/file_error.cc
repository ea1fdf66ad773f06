#include "base/file_error.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/shown_url.h"

namespace penstock {

absl::Status FileError(int error, const std::string& what) {
  if (error == EMFILE) {
    struct rlimit limit {};
    getrlimit(RLIMIT_NOFILE, &limit);
    return absl::ResourceExhaustedError(
        absl::StrCat(what, ": all ", limit.rlim_cur,
                     " descriptors that this process may have are open: raise its limit (ulimit "
                     "-Hn, LimitNOFILE)"));
  }
  if (error != ELOOP) return absl::ErrnoToStatus(error, what);
  return absl::FailedPreconditionError(
      absl::StrCat(what, ": its symbolic links lead in a circle, or are too many"));
}

bool IsAddress(const std::string& path) {
  const size_t end = path.find("://");
  if (end == std::string::npos || end == 0 || !absl::ascii_isalpha(path[0])) return false;
  return std::all_of(path.begin(), path.begin() + static_cast<ptrdiff_t>(end), [](char letter) {
    return absl::ascii_isalnum(letter) || letter == '+' || letter == '-' || letter == '.';
  });
}

absl::Status CheckNoAddress(const std::string& path) {
  if (!IsAddress(path)) return absl::OkStatus();
  const std::string scheme = path.substr(0, path.find("://") + 3);
  const bool is_file = scheme == "file://";
  const std::string remedy = is_file ? "write the path alone"
                                     : "mount what it leads to (mount-s3, gcsfuse, rclone mount), "
                                       "or copy it, and name the path";
  // Of others no daemon reads any.
  const bool may_be_read =
      scheme == "s3://" || scheme == "gs://" || scheme == "http://" || scheme == "https://";
  return absl::InvalidArgumentError(absl::StrCat(
      "expected a path of this machine, found an address: ", scheme, " is not read; ", remedy,
      may_be_read ? ", or let this daemon read addresses (remote { allow })" : "", " (",
      ShownUrl(path), ")"));
}

absl::Status CannotOpen(int error, const std::string& path) {
  if (absl::Status status = CheckNoAddress(path); !status.ok()) return status;
  return FileError(error, absl::StrCat("cannot open ", path));
}

}  // namespace penstock
