// A file of this machine, once somebody has opened it.
//
// Threads:  safe from any thread, but for LocalFileLook.
#pragma once

#include <glob.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/file.h"

namespace penstock {

// Takes `fd`, opened for reading; messages call it `path`. PermissionDenied for anything but a
// regular file, and for those of the kernel (/proc, /sys), which are windows into the daemon
// itself.
absl::StatusOr<std::shared_ptr<RandomAccessFile>> TakeLocalFile(const std::string& path, int fd);

// The same verdict from a descriptor that need not be readable (O_PATH), which opens nothing.
absl::Status CheckLocalFile(const std::string& path, int fd);

// Files of this machine by their paths, which are looked at and not opened: a listing of ten
// thousand takes some ten milliseconds.
// Threads: one thread.
class LocalFileLook {
 public:
  LocalFileLook() = default;
  LocalFileLook(const LocalFileLook&) = delete;
  LocalFileLook& operator=(const LocalFileLook&) = delete;
  ~LocalFileLook();

  // What FileSystem::Open() finds, with the same verdict.
  absl::StatusOr<ListedFile> At(const std::string& path);

 private:
  // Goes to the folder of a path, unless it is there; the rest of the path.
  const char* Enter(const std::string& path);

  std::string folder_;  // the last one, with the slash behind it
  int folder_fd_ = -1;  // O_PATH; -1: paths are taken as they are
  // The last file system that is no window into the kernel.
  bool knows_device_ = false;
  uint64_t device_ = 0;
  uint64_t holder_ = 0;  // its identity
};

// Of a file of this machine, by what the system says of it and, where that is known, of its file
// system. The file system's identity and not its device's number, which a boot or another host may
// change.
FileVersion VersionOf(const struct stat& file, const struct statfs* system);
// The same of an open file.
FileVersion VersionOf(int fd, const struct stat& file);

// The machine's own files, with another disk to write to, which must outlive them.
std::unique_ptr<FileSystem> MakeLocalFileSystem(Disk& disk);
// Whether these are the machine's own files, whatever their disk: they may be mapped by their
// paths.
bool IsLocalFileSystem(const FileSystem& files);

// What glob() found for a pattern, sorted, without index files unless the pattern asks for them;
// frees it. NotFound when that is nothing, `listing_error` when a folder could not be listed.
absl::StatusOr<std::vector<std::string>> TakeMatches(const std::string& pattern, int result,
                                                     int listing_error, glob_t* found);

}  // namespace penstock
