#include "base/rooted_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file_error.h"
#include "base/literal_glob.h"
#include "base/local_file.h"
#include "base/pending_call.h"

namespace penstock {
namespace {

struct Root {
  std::string path;  // ends with "/"
  int fd = -1;
};

class RootedFiles final : public FileSystem {
 public:
  explicit RootedFiles(Disk* disk) : disk_(disk) {}
  ~RootedFiles() override {
    for (const Root& root : roots_) close(root.fd);
  }

  absl::Status AddRoot(const std::string& path) {
    const int fd = open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open the data root ", path));
    roots_.push_back({absl::EndsWith(path, "/") ? path : path + "/", fd});
    return absl::OkStatus();
  }

  Disk* disk() override { return disk_; }

  absl::StatusOr<std::shared_ptr<RandomAccessFile>> Open(const std::string& path) override {
    const Root* root = RootOf(path);
    if (root == nullptr) return OutsideError(path);
    const PendingCall call("opening", path);
    const int place = OpenBelow(*root, path, O_PATH);
    if (place < 0) return ErrorOf(errno, path);
    absl::Status status = CheckLocalFile(path, place);
    close(place);
    if (!status.ok()) return status;
    const int fd = OpenBelow(*root, path, O_RDONLY | O_NONBLOCK);
    if (fd < 0) return ErrorOf(errno, path);
    return TakeLocalFile(path, fd);
  }

  absl::StatusOr<std::vector<ListedFile>> List(const std::string& pattern) override {
    const absl::StatusOr<std::vector<std::string>> paths = Match(pattern);
    if (!paths.ok()) return paths.status();
    std::vector<ListedFile> files;
    files.reserve(paths->size());
    for (const std::string& path : *paths) {
      const absl::StatusOr<std::shared_ptr<RandomAccessFile>> file = Open(path);
      if (!file.ok()) return file.status();
      files.push_back({path, (*file)->size(), (*file)->version()});
    }
    return files;
  }

 private:
  absl::StatusOr<std::vector<std::string>> Match(const std::string& pattern) const {
    const Root* root = RootOf(pattern);
    if (root == nullptr) return OutsideError(pattern);
    const PendingCall call("listing", pattern);
    const auto is_there = [root](const std::string& path) {
      const int place = OpenBelow(*root, path, O_PATH | O_NOFOLLOW);
      if (place < 0) return false;
      close(place);
      return true;
    };
    const std::optional<std::string> wild = LiteralFirst(pattern, is_there);
    if (!wild) return std::vector<std::string>{pattern};
    Listing listing{*root};
    current_listing = &listing;
    glob_t found{};
    found.gl_opendir = [](const char* path) -> void* { return current_listing->OpenFolder(path); };
    found.gl_readdir = [](void* folder) { return readdir(static_cast<DIR*>(folder)); };
    found.gl_closedir = [](void* folder) { closedir(static_cast<DIR*>(folder)); };
    found.gl_stat = [](const char* path, struct stat* status) {
      return current_listing->Stat(path, O_PATH, status);
    };
    found.gl_lstat = [](const char* path, struct stat* status) {
      return current_listing->Stat(path, O_PATH | O_NOFOLLOW, status);
    };
    thread_local int listing_error;
    listing_error = 0;
    const auto on_error = [](const char*, int error) {
      if (error == ENOENT || error == ENOTDIR) return 0;
      listing_error = error;
      return 1;
    };
    const int result = glob(wild->c_str(), kGlobFlags | GLOB_ALTDIRFUNC, on_error, &found);
    current_listing = nullptr;
    return TakeMatches(pattern, result, listing_error, &found);
  }

  // glob() gives its callbacks no argument of the caller's: they find theirs by the thread.
  struct Listing {
    const Root& root;

    DIR* OpenFolder(const char* path) const {
      const int fd = OpenBelow(root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
      if (fd < 0) {
        // What leads out of the root is not there.
        if (errno == EXDEV || errno == ELOOP) errno = ENOENT;
        return nullptr;
      }
      return fdopendir(fd);
    }
    int Stat(const char* path, int flags, struct stat* status) const {
      const int fd = OpenBelow(root, path, flags);
      if (fd < 0) return -1;
      const int result = fstat(fd, status);
      close(fd);
      return result;
    }
  };
  static thread_local const Listing* current_listing;

  static int OpenBelow(const Root& root, const std::string& path, uint64_t flags) {
    const std::string below =
        path.size() > root.path.size() ? path.substr(root.path.size()) : std::string(".");
    open_how how{};
    how.flags = flags | O_CLOEXEC;
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS;
    int fd;
    do {
      // EAGAIN: something was renamed meanwhile, and the kernel cannot tell whether it led out.
      fd = static_cast<int>(syscall(SYS_openat2, root.fd, below.c_str(), &how, sizeof(how)));
    } while (fd < 0 && (errno == EAGAIN || errno == EINTR));
    return fd;
  }

  const Root* RootOf(const std::string& path) const {
    for (const Root& root : roots_) {
      if (absl::StartsWith(path, root.path) || path + "/" == root.path) return &root;
    }
    return nullptr;
  }

  absl::Status OutsideError(const std::string& path) const {
    if (absl::Status status = CheckNoAddress(path); !status.ok()) return status;
    return absl::PermissionDeniedError(absl::StrCat(
        "not below the daemon's data_roots (",
        absl::StrJoin(roots_, ", ", [](std::string* out, const Root& root) { *out += root.path; }),
        "): ", path));
  }

  absl::Status ErrorOf(int error, const std::string& path) const {
    if (error == EXDEV || error == ELOOP) {
      return absl::PermissionDeniedError(
          absl::StrCat("leads out of the daemon's data_roots by \"..\" or a symbolic link, or its "
                       "links lead in a circle: ",
                       path));
    }
    return CannotOpen(error, path);
  }

  Disk* const disk_;
  std::vector<Root> roots_;  // constant after AddRoot()
};

thread_local const RootedFiles::Listing* RootedFiles::current_listing = nullptr;

}  // namespace

absl::StatusOr<std::unique_ptr<FileSystem>> MakeRootedFileSystem(
    const std::vector<std::string>& roots, Disk* disk) {
  auto files = std::make_unique<RootedFiles>(disk);
  for (const std::string& root : roots) {
    absl::Status status = files->AddRoot(root);
    if (!status.ok()) return status;
  }
  return files;
}

}  // namespace penstock
