#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/disk.h"
#include "base/file_error.h"
#include "base/pending_call.h"

namespace penstock {
namespace {

// The kernel begins to write such a piece to the disk at once, so that the last Sync() has little
// to wait for.
constexpr uint64_t kFlushedBytes = uint64_t{1} << 20;

// Stands around what may wait for the disk.
class Writing : public PendingCall {
 public:
  Writing(const char* doing, const std::string& path, uint64_t offset = 0,
          CallKind kind = CallKind::kWrite)
      : PendingCall(doing, path, offset, kind) {}
};

absl::Status ErrorOf(int error, const char* what, const std::string& path) {
  const std::string message = absl::StrCat("cannot ", what, " ", path);
  if (error == ENOSPC || error == EDQUOT) {
    return absl::ResourceExhaustedError(
        absl::StrCat(message, error == ENOSPC ? ": the disk is full" : ": the quota is used up"));
  }
  return FileError(error, message);
}

class LocalWrittenFile final : public WrittenFile {
 public:
  LocalWrittenFile(std::string path, int fd, uint64_t inode)
      : path_(std::move(path)), fd_(fd), inode_(inode) {}
  ~LocalWrittenFile() override {
    const Writing call("closing", path_);
    close(fd_);
  }

  absl::Status WriteAt(uint64_t offset, absl::Span<const uint8_t> bytes) override {
    const Writing call("writing", path_, offset);
    const uint64_t begin = offset;
    while (!bytes.empty()) {
      const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return ErrorOf(written < 0 ? errno : EIO, "write", path_);
      bytes.remove_prefix(written);
      offset += written;
    }
    if (offset - begin >= kFlushedBytes) {
      sync_file_range(fd_, static_cast<off_t>(begin), static_cast<off_t>(offset - begin),
                      SYNC_FILE_RANGE_WRITE);
    }
    return absl::OkStatus();
  }

  absl::Status Truncate(uint64_t bytes) override {
    const Writing call("cutting", path_);
    if (ftruncate(fd_, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
    return ErrorOf(errno, "cut", path_);
  }

  absl::Status Sync() override {
    const Writing call("syncing", path_, 0, CallKind::kSync);
    if (fsync(fd_) == 0) return absl::OkStatus();
    return ErrorOf(errno, "make durable", path_);
  }

  uint64_t object() const override { return inode_; }

 private:
  const std::string path_;
  const int fd_;
  const uint64_t inode_;
};

class LocalDiskImpl final : public Disk {
 public:
  LocalDiskImpl(std::vector<std::string> roots, uint64_t folder_bytes_max)
      : roots_(std::move(roots)), folder_bytes_max_(folder_bytes_max) {}

  absl::Status CheckFolder(const std::string& folder) override {
    if (folder.empty() || folder[0] != '/') {
      return absl::InvalidArgumentError(
          absl::StrCat("expected an absolute path of a folder, found \"", folder, "\""));
    }
    const Writing call("looking for", folder);
    return CheckBelowRoots(folder);
  }

  absl::Status MakeFolder(const std::string& folder) override {
    const Writing call("making", folder);
    if (absl::Status status = CheckFolder(folder); !status.ok()) return status;
    for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) {
      const std::string part = folder.substr(0, end);
      if (mkdir(part.c_str(), 0777) != 0 && errno != EEXIST) {
        // A folder above that exists but may not be written is none to make.
        const int error = errno;
        struct stat status;
        if (stat(part.c_str(), &status) != 0 || !S_ISDIR(status.st_mode))
          return ErrorOf(error, "make the folder", part);
      }
      if (end == std::string::npos) break;
    }
    struct stat status;
    if (stat(folder.c_str(), &status) != 0) return ErrorOf(errno, "make the folder", folder);
    if (!S_ISDIR(status.st_mode)) return ErrorOf(ENOTDIR, "make the folder", folder);
    return CheckBelowRoots(folder);
  }

  absl::StatusOr<std::unique_ptr<WrittenFile>> Create(const std::string& path) override {
    const Writing call("creating", path);
    while (true) {
      const int fd =
          open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
      if (fd < 0) return ErrorOf(errno, "create", path);
      struct stat opened, named;
      if (fstat(fd, &opened) != 0 || !S_ISREG(opened.st_mode)) {
        close(fd);
        return absl::PermissionDeniedError(absl::StrCat("not a regular file: ", path));
      }
      if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        const int error = errno;
        close(fd);
        if (error == EWOULDBLOCK)
          return absl::UnavailableError(absl::StrCat("another writer has it: ", path));
        return ErrorOf(error, "lock", path);
      }
      // The file that was opened may have got its last name before it was locked.
      if (stat(path.c_str(), &named) != 0 || named.st_ino != opened.st_ino ||
          named.st_dev != opened.st_dev) {
        close(fd);
        continue;
      }
      auto file = std::make_unique<LocalWrittenFile>(path, fd, opened.st_ino);
      if (absl::Status status = file->Truncate(0); !status.ok()) return status;
      return file;
    }
  }

  absl::Status Publish(const std::string& path, const std::string& name) override {
    const Writing call("naming", name);
    if (rename(path.c_str(), name.c_str()) != 0) return ErrorOf(errno, "name", name);
    const std::string folder = name.substr(0, name.rfind('/') + 1);
    const int fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return ErrorOf(errno, "open the folder", folder);
    const int error = fsync(fd) == 0 ? 0 : errno;
    close(fd);
    return error == 0 ? absl::OkStatus() : ErrorOf(error, "make durable the folder", folder);
  }

  absl::Status Remove(const std::string& path) override {
    const Writing call("removing", path);
    if (unlink(path.c_str()) == 0) return absl::OkStatus();
    return ErrorOf(errno, "remove", path);
  }

  absl::StatusOr<std::vector<FolderEntry>> List(const std::string& folder) override {
    const Writing call("listing", folder);
    std::vector<FolderEntry> entries;
    DIR* const directory = opendir(folder.c_str());
    if (directory == nullptr) {
      if (errno == ENOENT) return entries;
      return ErrorOf(errno, "list", folder);
    }
    while (const dirent* entry = readdir(directory)) {
      struct stat status;
      if (fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      if (S_ISREG(status.st_mode))
        entries.push_back({entry->d_name, static_cast<uint64_t>(status.st_size)});
    }
    closedir(directory);
    std::sort(entries.begin(), entries.end(),
              [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
    return entries;
  }

  uint64_t FreeBytes(const std::string& folder) override {
    const Writing call("measuring", folder);
    struct statvfs disk;
    if (statvfs(folder.c_str(), &disk) != 0) return UINT64_MAX;
    uint64_t bytes = 0;
    if (__builtin_mul_overflow(static_cast<uint64_t>(disk.f_bavail),
                               static_cast<uint64_t>(disk.f_frsize), &bytes))
      return UINT64_MAX;
    return bytes;
  }

  uint64_t folder_bytes_max() const override { return folder_bytes_max_; }

 private:
  // The part of the folder that there is already must not lead out.
  absl::Status CheckBelowRoots(const std::string& folder) const {
    if (roots_.empty()) return absl::OkStatus();
    std::string part = folder;
    char* real = nullptr;
    while ((real = realpath(part.c_str(), nullptr)) == nullptr && part.size() > 1) {
      if (errno != ENOENT) return ErrorOf(errno, "find", part);
      part = part.substr(0, std::max<size_t>(part.rfind('/'), 1));
    }
    if (real == nullptr) return ErrorOf(errno, "find", folder);
    const std::string found = absl::StrCat(real, folder.substr(part.size()), "/");
    std::free(real);
    const bool climbs = absl::StrCat(folder, "/").find("/../") != std::string::npos;
    for (const std::string& root : roots_) {
      // An address is none of this machine's folders.
      if (root[0] != '/') continue;
      char* const real_root = realpath(root.c_str(), nullptr);
      if (real_root == nullptr) continue;
      const std::string below = absl::StrCat(real_root, "/");
      std::free(real_root);
      if (!climbs && found.compare(0, below.size(), below) == 0) return absl::OkStatus();
    }
    return absl::PermissionDeniedError(
        absl::StrCat("not below a folder that the daemon may write to (cache.roots: ",
                     absl::StrJoin(roots_, ", "), "): ", folder));
  }

  const std::vector<std::string> roots_;
  const uint64_t folder_bytes_max_;
};

}  // namespace

Disk& LocalDisk() {
  static LocalDiskImpl& disk = *new LocalDiskImpl({}, UINT64_MAX);
  return disk;
}

std::unique_ptr<Disk> MakeLimitedDisk(std::vector<std::string> roots, uint64_t folder_bytes_max) {
  return std::make_unique<LocalDiskImpl>(std::move(roots), folder_bytes_max);
}

}  // namespace penstock
