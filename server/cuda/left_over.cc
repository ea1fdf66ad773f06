#include "server/cuda/left_over.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <memory>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace penstock {
namespace {

// Of a process that has ended or is ending, in the kernel's flags (PF_EXITING of linux/sched.h): a
// lock that it had is free before its devices are closed, and before its parent has asked for it.
constexpr uint64_t kExiting = 0x4;

bool IsGone(pid_t pid) {
  if (kill(pid, 0) != 0 && errno == ESRCH) return true;
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  // Behind the name, which may hold anything: state, parent, group, session, terminal, its group,
  // flags.
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(std::min(text.size(), text.rfind(')') + 1)), ' ');
  uint64_t flags = 0;
  return fields.size() > 7 && absl::SimpleAtoi(fields[7], &flags) && (flags & kExiting) != 0;
}

}  // namespace

int RemoveLeftOver(pid_t pid, const std::string& folder) {
  if (pid <= 0 || !IsGone(pid)) return 0;
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
