#include "client/ctl/daemon/program_beside.h"

#include <limits.h>
#include <unistd.h>

#include "absl/strings/str_cat.h"

namespace penstock::ctl {

std::string ProgramBeside(const std::string& name) {
  char path[PATH_MAX];
  const ssize_t size = readlink("/proc/self/exe", path, sizeof(path));
  if (size > 0) {
    std::string program(path, size);
    program.replace(program.rfind('/') + 1, std::string::npos, name);
    if (access(program.c_str(), X_OK) == 0) return program;
  }
  return name;
}

absl::Status CannotStart(const std::string& program, int error) {
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot start ", program,
                          "; install it beside this program or into a folder of PATH"));
}

}  // namespace penstock::ctl
