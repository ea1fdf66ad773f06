#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/disk.h"
#include "base/file.h"
#include "base/file_error.h"
#include "base/local_file.h"
#include "base/pending_call.h"
#include "base/read_fully.h"

namespace penstock {
namespace {

absl::Status NotRegular(const std::string& path, mode_t mode) {
  if (S_ISDIR(mode)) {
    return absl::InvalidArgumentError(absl::StrCat("not a regular file but a folder: ", path,
                                                   "; for the files in it: ", path, "/*"));
  }
  return absl::PermissionDeniedError(absl::StrCat("not a regular file: ", path));
}
absl::Status OfKernel(const std::string& path) {
  return absl::PermissionDeniedError(absl::StrCat("a file of the kernel, not of data: ", path));
}
bool IsKernels(const struct statfs& system) {
  return system.f_type == PROC_SUPER_MAGIC || system.f_type == SYSFS_MAGIC;
}

FileIdentity IdentityOf(const struct stat& status) {
  return {status.st_mtim.tv_sec * int64_t{1'000'000'000} + status.st_mtim.tv_nsec, status.st_ino};
}

class LocalFile final : public RandomAccessFile {
 public:
  LocalFile(std::string path, int fd, const struct stat& status)
      : path_(std::move(path)), fd_(fd), size_(status.st_size), identity_(IdentityOf(status)) {}
  ~LocalFile() override { close(fd_); }

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  FileIdentity identity() const override { return identity_; }
  uint64_t SizeNow() const override {
    const PendingCall call("opening", path_);
    struct stat status;
    return fstat(fd_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : size_;
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<uint8_t> out) override {
    const PendingCall call("reading", path_, offset);
    return ReadFully(
        path_, offset, out,
        [this](uint8_t* to, size_t bytes, uint64_t from) { return pread(fd_, to, bytes, from); },
        [](int64_t pause_ns) { absl::SleepFor(absl::Nanoseconds(pause_ns)); });
  }

  void WillNeed(uint64_t offset, uint64_t bytes) override {
    posix_fadvise(fd_, offset, bytes, POSIX_FADV_WILLNEED);
  }

  int descriptor() const override { return fd_; }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t size_;
  const FileIdentity identity_;
};

class LocalFiles final : public FileSystem {
 public:
  explicit LocalFiles(Disk& disk) : disk_(disk) {}

  Disk* disk() override { return &disk_; }

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    const PendingCall call("opening", path);
    // Looked at before it is opened: opening a device may do something, and a FIFO's other end sees
    // it.
    const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
    if (place < 0) return FileError(errno, absl::StrCat("cannot open ", path));
    absl::Status status = CheckLocalFile(path, place);
    close(place);
    if (!status.ok()) return status;
    // O_NONBLOCK: what has become a FIFO since must not hold up the daemon.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return FileError(errno, absl::StrCat("cannot open ", path));
    return TakeLocalFile(path, fd);
  }

  absl::StatusOr<std::vector<std::string>> Glob(const std::string& pattern) override {
    const PendingCall call("listing", pattern);
    if (pattern.find_first_of("*?[") == std::string::npos) {
      struct stat status;
      if (stat(pattern.c_str(), &status) != 0) {
        return FileError(errno, absl::StrCat("cannot open ", pattern));
      }
      return std::vector<std::string>{pattern};
    }
    glob_t found{};
    // A folder that is not there matches nothing; any other one that cannot be listed is an error.
    thread_local int listing_error;
    const auto on_error = [](const char*, int error) {
      listing_error = error;
      return error != ENOENT && error != ENOTDIR ? 1 : 0;
    };
    const int result = glob(pattern.c_str(), GLOB_NOSORT, on_error, &found);
    if (result == GLOB_ABORTED && listing_error == ELOOP) {
      globfree(&found);
      return FileError(ELOOP, absl::StrCat("cannot list a folder of the glob ", pattern));
    }
    return TakeMatches(pattern, result, &found);
  }

 private:
  Disk& disk_;
};

}  // namespace

absl::Status CheckLocalFile(const std::string& path, int fd) {
  struct stat status;
  if (fstat(fd, &status) != 0) return FileError(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(status.st_mode)) return NotRegular(path, status.st_mode);
  struct statfs system;
  if (fstatfs(fd, &system) == 0 && IsKernels(system)) return OfKernel(path);
  return absl::OkStatus();
}

LocalFileLook::~LocalFileLook() {
  if (folder_fd_ >= 0) close(folder_fd_);
}

const char* LocalFileLook::Enter(const std::string& path) {
  // What ends with a slash is a folder itself.
  const size_t slash = path.rfind('/');
  const size_t begin = slash == std::string::npos || slash + 1 == path.size() ? 0 : slash + 1;
  if (path.compare(0, begin, folder_) != 0) {
    if (folder_fd_ >= 0) close(folder_fd_);
    folder_ = path.substr(0, begin);
    folder_fd_ = begin > 0 ? open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  }
  return path.c_str() + (folder_fd_ >= 0 ? begin : 0);
}

absl::StatusOr<LocalFileLook::Facts> LocalFileLook::At(const std::string& path) {
  const PendingCall call("opening", path);
  const char* const name = Enter(path);
  const int folder = folder_fd_ >= 0 ? folder_fd_ : AT_FDCWD;
  struct stat status;
  if (fstatat(folder, name, &status, 0) != 0)
    return FileError(errno, absl::StrCat("cannot open ", path));
  if (!S_ISREG(status.st_mode)) return NotRegular(path, status.st_mode);
  if (!knows_device_ || device_ != status.st_dev) {
    struct statfs system;
    if (statfs(path.c_str(), &system) == 0) {
      if (IsKernels(system)) return OfKernel(path);
      knows_device_ = true;
      device_ = status.st_dev;
    }
  }
  // What all may read needs no second question.
  constexpr mode_t kAllRead = S_IRUSR | S_IRGRP | S_IROTH;
  if ((status.st_mode & kAllRead) != kAllRead && faccessat(folder, name, R_OK, AT_EACCESS) != 0) {
    return FileError(errno, absl::StrCat("cannot open ", path));
  }
  return Facts{static_cast<uint64_t>(status.st_size), IdentityOf(status)};
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> TakeLocalFile(const std::string& path, int fd) {
  absl::Status checked = CheckLocalFile(path, fd);
  struct stat status;
  if (checked.ok() && fstat(fd, &status) != 0)
    checked = FileError(errno, absl::StrCat("cannot stat ", path));
  if (!checked.ok()) {
    close(fd);
    return checked;
  }
  return std::make_shared<LocalFile>(path, fd, status);
}

absl::StatusOr<std::vector<std::string>> TakeMatches(const std::string& pattern, int result,
                                                     glob_t* found) {
  std::vector<std::string> paths(found->gl_pathv, found->gl_pathv + found->gl_pathc);
  globfree(found);
  if (!absl::EndsWith(pattern, kIndexSuffix)) {
    std::erase_if(paths,
                  [](const std::string& path) { return absl::EndsWith(path, kIndexSuffix); });
  }
  if (result == GLOB_ABORTED)
    return absl::PermissionDeniedError(absl::StrCat("cannot list a folder of the glob ", pattern));
  if (paths.empty()) return absl::NotFoundError(absl::StrCat("no file matches the glob ", pattern));
  std::sort(paths.begin(), paths.end());
  return paths;
}

FileSystem& LocalFileSystem() {
  static LocalFiles files(LocalDisk());
  return files;
}

std::unique_ptr<FileSystem> MakeLocalFileSystem(Disk& disk) {
  return std::make_unique<LocalFiles>(disk);
}

bool IsLocalFileSystem(const FileSystem& files) {
  return dynamic_cast<const LocalFiles*>(&files) != nullptr;
}

}  // namespace penstock
