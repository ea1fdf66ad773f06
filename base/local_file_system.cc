#include <fcntl.h>
#include <glob.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/disk.h"
#include "base/far_file.h"
#include "base/file.h"
#include "base/file_error.h"
#include "base/literal_glob.h"
#include "base/local_file.h"
#include "base/nanoseconds.h"
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

uint64_t HolderOf(const struct statfs& system) {
  uint64_t holder = 0;
  static_assert(sizeof(system.f_fsid) == sizeof(holder));
  std::memcpy(&holder, &system.f_fsid, sizeof(holder));
  return holder;
}

int64_t Nanos(const struct timespec& time) { return time.tv_sec * kNsPerSecond + time.tv_nsec; }

// The verdict on an open file; `version`: what it is then.
absl::Status Judge(const std::string& path, int fd, struct stat* status, FileVersion* version) {
  if (fstat(fd, status) != 0) return FileError(errno, absl::StrCat("cannot stat ", path));
  if (!S_ISREG(status->st_mode)) return NotRegular(path, status->st_mode);
  struct statfs system;
  const bool is_known = fstatfs(fd, &system) == 0;
  if (is_known && IsKernels(system)) return OfKernel(path);
  *version = VersionOf(*status, is_known ? &system : nullptr);
  return absl::OkStatus();
}

class LocalFile final : public RandomAccessFile {
 public:
  LocalFile(std::string path, int fd, uint64_t size, const FileVersion& version)
      : path_(std::move(path)), fd_(fd), size_(size), version_(version) {}
  ~LocalFile() override { close(fd_); }

  const std::string& path() const override { return path_; }
  uint64_t size() const override { return size_; }
  FileVersion version() const override { return version_; }
  uint64_t SizeNow() const override {
    const PendingCall call("opening", path_);
    struct stat status;
    return fstat(fd_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : size_;
  }
  FileVersion VersionNow() const override {
    const PendingCall call("opening", path_);
    struct stat status;
    return fstat(fd_, &status) == 0 ? VersionOf(fd_, status) : version_;
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
  const FileVersion version_;
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
    if (place < 0) return CannotOpen(errno, path);
    absl::Status status = CheckLocalFile(path, place);
    close(place);
    if (!status.ok()) return status;
    // O_NONBLOCK: what has become a FIFO since must not hold up the daemon.
    const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return CannotOpen(errno, path);
    return TakeLocalFile(path, fd);
  }

  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    const absl::StatusOr<std::vector<std::string>> paths = Match(pattern);
    if (!paths.ok()) return paths.status();
    std::vector<ListedFile> files;
    files.reserve(paths->size());
    LocalFileLook look;
    for (const std::string& path : *paths) {
      absl::StatusOr<ListedFile> file = look.At(path);
      if (!file.ok()) return file.status();
      files.push_back(*std::move(file));
    }
    return files;
  }

 private:
  static absl::StatusOr<std::vector<std::string>> Match(const std::string& pattern) {
    const PendingCall call("listing", pattern);
    const auto is_there = [](const std::string& path) {
      struct stat status;
      return lstat(path.c_str(), &status) == 0;
    };
    const std::optional<std::string> wild = LiteralFirst(pattern, is_there);
    if (!wild) return std::vector<std::string>{pattern};
    glob_t found{};
    // A folder that is not there matches nothing; any other one that cannot be listed is an error.
    thread_local int listing_error;
    listing_error = 0;
    const auto on_error = [](const char*, int error) {
      if (error == ENOENT || error == ENOTDIR) return 0;
      listing_error = error;
      return 1;
    };
    const int result = glob(wild->c_str(), kGlobFlags, on_error, &found);
    return TakeMatches(pattern, result, listing_error, &found);
  }

  Disk& disk_;
};

}  // namespace

FileVersion VersionOf(const struct stat& file, const struct statfs* system) {
  return {Nanos(file.st_mtim), file.st_ino, system == nullptr ? 0 : HolderOf(*system),
          Nanos(file.st_ctim)};
}

FileVersion VersionOf(int fd, const struct stat& file) {
  struct statfs system;
  return VersionOf(file, fstatfs(fd, &system) == 0 ? &system : nullptr);
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> FileSystem::OpenListed(const ListedFile& file) {
  absl::StatusOr<std::shared_ptr<RandomAccessFile>> opened = Open(file.path);
  if (!opened.ok()) return opened.status();
  if ((*opened)->size() != file.size_bytes) {
    return absl::FailedPreconditionError(
        absl::StrCat("the file changed since the pipeline was created: ", file.size_bytes,
                     " bytes then, ", (*opened)->size(), " now (", file.path, ")"));
  }
  if (!(*opened)->version().HasContentOf(file.version)) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the file was written to or replaced since the pipeline was created (", file.path, ")"));
  }
  return opened;
}

absl::Status CheckLocalFile(const std::string& path, int fd) {
  struct stat status;
  FileVersion version;
  return Judge(path, fd, &status, &version);
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

absl::StatusOr<ListedFile> LocalFileLook::At(const std::string& path) {
  const PendingCall call("opening", path);
  const char* const name = Enter(path);
  const int folder = folder_fd_ >= 0 ? folder_fd_ : AT_FDCWD;
  struct stat status;
  if (fstatat(folder, name, &status, 0) != 0) return CannotOpen(errno, path);
  if (!S_ISREG(status.st_mode)) return NotRegular(path, status.st_mode);
  if (!knows_device_ || device_ != status.st_dev) {
    struct statfs system;
    knows_device_ = statfs(path.c_str(), &system) == 0;
    if (knows_device_ && IsKernels(system)) {
      knows_device_ = false;
      return OfKernel(path);
    }
    device_ = status.st_dev;
    holder_ = knows_device_ ? HolderOf(system) : 0;
  }
  // What all may read needs no second question.
  constexpr mode_t kAllRead = S_IRUSR | S_IRGRP | S_IROTH;
  if ((status.st_mode & kAllRead) != kAllRead && faccessat(folder, name, R_OK, AT_EACCESS) != 0) {
    return CannotOpen(errno, path);
  }
  FileVersion version = VersionOf(status, nullptr);
  version.holder = holder_;
  return ListedFile{path, static_cast<uint64_t>(status.st_size), version};
}

absl::StatusOr<std::shared_ptr<RandomAccessFile>> TakeLocalFile(const std::string& path, int fd) {
  struct stat status;
  FileVersion version;
  const absl::Status judged = Judge(path, fd, &status, &version);
  if (!judged.ok()) {
    close(fd);
    return judged;
  }
  return std::make_shared<LocalFile>(path, fd, static_cast<uint64_t>(status.st_size), version);
}

absl::StatusOr<std::vector<std::string>> TakeMatches(const std::string& pattern, int result,
                                                     int listing_error, glob_t* found) {
  std::vector<std::string> paths(found->gl_pathv, found->gl_pathv + found->gl_pathc);
  globfree(found);
  if (!absl::EndsWith(pattern, kIndexSuffix)) {
    std::erase_if(paths,
                  [](const std::string& path) { return absl::EndsWith(path, kIndexSuffix); });
  }
  if (result == GLOB_ABORTED) {
    return FileError(listing_error, absl::StrCat("cannot list a folder of the glob ", pattern));
  }
  if (!paths.empty()) {
    std::sort(paths.begin(), paths.end());
    // Both sides of a choice may match a file.
    paths.erase(std::unique(paths.begin(), paths.end()), paths.end());
    return paths;
  }
  if (absl::Status status = CheckNoAddress(pattern); !status.ok()) return status;
  return absl::NotFoundError(absl::StrCat("no file matches the glob ", pattern));
}

FileSystem& LocalFileSystem() {
  static LocalFiles files(LocalDisk());
  return files;
}

std::unique_ptr<FileSystem> MakeLocalFileSystem(Disk& disk) {
  return std::make_unique<LocalFiles>(disk);
}

bool IsLocalFileSystem(const FileSystem& files) {
  if (const auto* const joined = dynamic_cast<const JoinedFileSystem*>(&files); joined != nullptr)
    return IsLocalFileSystem(joined->local());
  return dynamic_cast<const LocalFiles*>(&files) != nullptr;
}

}  // namespace penstock
