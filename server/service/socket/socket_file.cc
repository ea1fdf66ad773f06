#include "server/service/socket/socket_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file_error.h"

namespace penstock {
namespace {

constexpr int kBacklog = 128;

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == path.npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string LockPath(const std::string& path) { return path + ".lock"; }

absl::Status MakeDirectory(const std::string& directory) {
  if (mkdir(directory.c_str(), 0750) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::ErrnoToStatus(
      errno, absl::StrCat("cannot make the socket's directory ", directory,
                          "; make it for this user, or choose another place with --socket PATH"));
}

// The number of this process's PID namespace; 0 where nobody tells.
uint64_t PidNamespace() {
  struct stat found;
  return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

// What a lock tells of the daemon that holds or held it, a line each.
struct Holder {
  pid_t pid = 0;  // 0: nothing
  uint64_t pid_namespace = 0;
};

Holder HolderOf(int lock) {
  char text[64] = {};
  const ssize_t size = pread(lock, text, sizeof(text) - 1, 0);
  const std::vector<absl::string_view> lines =
      absl::StrSplit(absl::string_view(text, size > 0 ? static_cast<size_t>(size) : 0), '\n');
  Holder holder;
  if (!absl::SimpleAtoi(lines[0], &holder.pid) || holder.pid < 0) return {};
  if (lines.size() < 2 || !absl::SimpleAtoi(lines[1], &holder.pid_namespace))
    holder.pid_namespace = 0;
  return holder;
}

std::string HolderText(int lock) {
  const Holder holder = HolderOf(lock);
  return holder.pid == 0 ? "" : absl::StrCat(" (process ", holder.pid, ")");
}

// Whether `fd` is still the file that stands at `path`.
bool IsAt(int fd, const std::string& path) {
  struct stat open_file, named_file;
  return fstat(fd, &open_file) == 0 && lstat(path.c_str(), &named_file) == 0 &&
         open_file.st_ino == named_file.st_ino && open_file.st_dev == named_file.st_dev;
}

// Whether `lock` may be written to: somebody else's file, or one that has another name too, was
// laid here by who wants the daemon to overwrite it, or to keep its place.
absl::Status CheckLock(int lock, const std::string& lock_path) {
  struct stat file;
  if (fstat(lock, &file) != 0) return absl::ErrnoToStatus(errno, "cannot look at the lock");
  if (!S_ISREG(file.st_mode) || file.st_nlink > 1) {
    return absl::PermissionDeniedError(absl::StrCat(
        "not a lock of penstockd: remove it, or choose another place with --socket PATH: ",
        lock_path));
  }
  if (file.st_uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("the lock belongs to another user: remove it, or choose another place with "
                   "--socket PATH; user ",
                   file.st_uid, ": ", lock_path));
}

// `predecessor`: who held it before and left the file there.
absl::StatusOr<ring::Descriptor> TakeLock(const std::string& path, pid_t* predecessor) {
  const std::string lock_path = LockPath(path);
  for (;;) {
    ring::Descriptor lock(open(lock_path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0640));
    if (!lock) {
      return FileError(errno, absl::StrCat("cannot open the lock ", lock_path,
                                           "; choose another place with --socket PATH"));
    }
    if (flock(lock.get(), LOCK_EX | LOCK_NB) != 0) {
      return absl::FailedPreconditionError(
          absl::StrCat("another penstockd", HolderText(lock.get()), " serves ", path,
                       "; use it, or start this one with --socket PATH"));
    }
    // A daemon that ended between our open and our lock has removed the file that we hold.
    if (!IsAt(lock.get(), lock_path)) continue;
    if (absl::Status status = CheckLock(lock.get(), lock_path); !status.ok()) return status;
    const Holder before = HolderOf(lock.get());
    // The number of a process in another container is nobody's here.
    const uint64_t here = PidNamespace();
    *predecessor = here != 0 && before.pid_namespace == here ? before.pid : 0;
    const std::string text = absl::StrCat(getpid(), "\n", here, "\n");
    if (ftruncate(lock.get(), 0) != 0 ||
        pwrite(lock.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", lock_path));
    }
    return lock;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Create(const std::string& path) {
  if (path.size() >= sizeof(sockaddr_un::sun_path)) {
    return absl::InvalidArgumentError(absl::StrCat("socket path longer than limit: ", path.size(),
                                                   " > ", sizeof(sockaddr_un::sun_path) - 1,
                                                   " bytes: ", path));
  }
  absl::Status status = MakeDirectory(DirectoryOf(path));
  if (!status.ok()) return status;
  pid_t predecessor = 0;
  absl::StatusOr<ring::Descriptor> lock = TakeLock(path, &predecessor);
  if (!lock.ok()) return lock.status();
  std::unique_ptr<SocketFile> file(new SocketFile(path, *std::move(lock), predecessor));
  status = file->Listen();
  if (!status.ok()) return status;
  return file;
}

absl::StatusOr<std::unique_ptr<SocketFile>> SocketFile::Adopt(ring::Descriptor socket) {
  sockaddr_un address{};
  socklen_t size = sizeof(address);
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0)
    return absl::ErrnoToStatus(errno, "cannot read the name of the service manager's socket");
  const std::string path(address.sun_path,
                         strnlen(address.sun_path, size - offsetof(sockaddr_un, sun_path)));
  if (path.empty()) {
    return absl::InvalidArgumentError(
        "the service manager's socket has no path: expected ListenStream=/PATH");
  }
  pid_t predecessor = 0;
  absl::StatusOr<ring::Descriptor> lock = TakeLock(path, &predecessor);
  if (!lock.ok()) return lock.status();
  std::unique_ptr<SocketFile> file(new SocketFile(path, *std::move(lock), predecessor));
  file->socket_ = std::move(socket);
  file->owns_socket_ = false;
  return file;
}

absl::Status SocketFile::Listen() {
  struct stat existing;
  if (lstat(path_.c_str(), &existing) == 0) {
    if (!S_ISSOCK(existing.st_mode)) {
      return absl::AlreadyExistsError(absl::StrCat(path_, " exists and is not a socket"));
    }
    unlink(path_.c_str());
  }
  ring::Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  // The mode of an unbound socket is that of its file, less the umask: never wider than 0660, at no
  // moment.
  if (!fd || fchmod(fd.get(), 0660) != 0 ||
      bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot bind ", path_));
  }
  struct stat bound;
  if (chmod(path_.c_str(), 0660) != 0 || listen(fd.get(), kBacklog) != 0 ||
      lstat(path_.c_str(), &bound) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot listen at ", path_));
  }
  socket_ = std::move(fd);
  socket_device_ = bound.st_dev;
  socket_inode_ = bound.st_ino;
  return absl::OkStatus();
}

bool SocketFile::HasSocketInPlace() const {
  struct stat named;
  return socket_ && lstat(path_.c_str(), &named) == 0 && named.st_dev == socket_device_ &&
         named.st_ino == socket_inode_;
}

bool SocketFile::IsInPlace() const {
  return IsAt(lock_.get(), LockPath(path_)) && (!owns_socket_ || HasSocketInPlace());
}

absl::Status SocketFile::PutBack() {
  if (absl::Status status = MakeDirectory(DirectoryOf(path_)); !status.ok()) return status;
  if (!IsAt(lock_.get(), LockPath(path_))) {
    pid_t predecessor = 0;
    absl::StatusOr<ring::Descriptor> lock = TakeLock(path_, &predecessor);
    if (!lock.ok()) return lock.status();
    lock_ = *std::move(lock);
  }
  return !owns_socket_ || HasSocketInPlace() ? absl::OkStatus() : Listen();
}

SocketFile::~SocketFile() {
  if (owns_socket_ && HasSocketInPlace()) unlink(path_.c_str());
  if (IsAt(lock_.get(), LockPath(path_))) unlink(LockPath(path_).c_str());
  if (remove_directory_) rmdir(DirectoryOf(path_).c_str());
}

}  // namespace penstock
