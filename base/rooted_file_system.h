// The files below some folders, and nothing else, whatever a path says: ".." and symbolic links
// that lead out of a folder are refused by the kernel (openat2), not by comparing names.
//
// Threads:  safe from any thread.
// Owns:     a descriptor of each folder.
// Limits:   a symbolic link with an absolute target leads out, also when it points back inside.
// Cost:     two system calls more for each file that is opened.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace penstock {

class Disk;

// `roots`: absolute paths of folders. NotFound and PermissionDenied name the one that cannot be
// opened. `disk`: where what is computed of the files may be kept, if anywhere; it must outlive
// them.
absl::StatusOr<std::unique_ptr<FileSystem>> MakeRootedFileSystem(
    const std::vector<std::string>& roots, Disk* disk = nullptr);

}  // namespace penstock
