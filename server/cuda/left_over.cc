#include "server/cuda/left_over.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace penstock {

int RemoveLeftOver(pid_t pid, const std::string& folder) {
  if (pid <= 1 || kill(pid, 0) == 0 || errno != ESRCH) return 0;
  const std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(folder.c_str()), &closedir);
  if (open == nullptr) return 0;
  const std::string number = absl::StrFormat("%x", pid);
  std::vector<std::string> found;
  while (const dirent* entry = readdir(open.get())) {
    const std::vector<std::string> parts = absl::StrSplit(entry->d_name, '.');
    if (parts.size() == 5 && parts[0] == "cuda" && parts[1] == "shm" && parts[3] == number)
      found.emplace_back(entry->d_name);
  }
  int removed = 0;
  for (const std::string& name : found) {
    struct stat file;
    const int at = dirfd(open.get());
    if (fstatat(at, name.c_str(), &file, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(file.st_mode) &&
        file.st_uid == geteuid() && unlinkat(at, name.c_str(), 0) == 0) {
      ++removed;
    }
  }
  return removed;
}

}  // namespace penstock
