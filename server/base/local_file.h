// A file of this machine, once somebody has opened it.
#pragma once

#include <glob.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/base/file.h"

namespace penstock {

// Takes `fd`, opened for reading; messages call it `path`. PermissionDenied for anything but a
// regular file, and for those of the kernel (/proc, /sys), which are windows into the daemon itself.
absl::StatusOr<std::shared_ptr<RandomAccessFile>> TakeLocalFile(const std::string& path, int fd);

// The same verdict from a descriptor that need not be readable (O_PATH), which opens nothing.
absl::Status CheckLocalFile(const std::string& path, int fd);

// What glob() found for a pattern, sorted, without index files unless the pattern asks for them; frees it. NotFound when that is nothing,
// PermissionDenied when a folder could not be listed.
absl::StatusOr<std::vector<std::string>> TakeMatches(const std::string& pattern, int result,
                                                     glob_t* found);

}  // namespace penstock
