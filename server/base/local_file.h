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

// The machine's own files, with another disk to write to, which must outlive them.
std::unique_ptr<FileSystem> MakeLocalFileSystem(Disk& disk);
// Whether these are the machine's own files, whatever their disk: they may be mapped by their paths.
bool IsLocalFileSystem(const FileSystem& files);

// What glob() found for a pattern, sorted, without index files unless the pattern asks for them; frees it. NotFound when that is nothing,
// PermissionDenied when a folder could not be listed.
absl::StatusOr<std::vector<std::string>> TakeMatches(const std::string& pattern, int result,
                                                     glob_t* found);

}  // namespace penstock
