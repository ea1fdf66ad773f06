#include "server/cuda/left_over.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "absl/strings/str_format.h"
#include "tests/support/catch.h"
#include "tests/support/scratch_folder.h"

namespace penstock {
namespace {

// The number of a process that has ended.
pid_t Ended() {
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  waitpid(pid, nullptr, 0);
  return pid;
}

bool Exists(const std::string& path) {
  struct stat file;
  return lstat(path.c_str(), &file) == 0;
}

TEST_CASE("a daemon that nobody has waited for yet is gone") {
  const test::ScratchFolder folder;
  const pid_t pid = fork();
  if (pid == 0) _exit(0);
  siginfo_t ended = {};
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &ended, WEXITED | WNOWAIT) == 0);
  std::ofstream(folder / absl::StrFormat("cuda.shm.0.%x.1", pid)) << "x";
  CHECK(RemoveLeftOver(pid, folder.path()) == 1);
  waitpid(pid, nullptr, 0);
}

TEST_CASE("what the driver left behind of a daemon that is gone is removed, and nothing else") {
  const test::ScratchFolder folder;
  const auto make = [&](const std::string& name) {
    std::ofstream(folder.path() + "/" + name) << "x";
    return folder.path() + "/" + name;
  };
  const pid_t gone = Ended();
  const std::string own = absl::StrFormat("%x", getpid());
  const std::string number = absl::StrFormat("%x", gone);
  const std::string first = make("cuda.shm.0." + number + ".1");
  const std::string second = make("cuda.shm.3e8." + number + ".2");
  const std::vector<std::string> others = {
      make("cuda.shm.0." + own + ".1"), make("cuda.shm.0." + number + "0.1"),
      make("cuda.shm.0." + number), make("cuda.shm." + number + ".0.1"),
      make("cuda.mem.0." + number + ".1")};
  const std::string link = folder.path() + "/cuda.shm.0." + number + ".3";
  REQUIRE(symlink(others[0].c_str(), link.c_str()) == 0);

  CHECK(RemoveLeftOver(getpid(), folder.path()) == 0);
  CHECK(RemoveLeftOver(0, folder.path()) == 0);
  CHECK(RemoveLeftOver(gone, folder.path() + "/none") == 0);
  CHECK(Exists(first));
  CHECK(RemoveLeftOver(gone, folder.path()) == 2);
  CHECK_FALSE(Exists(first));
  CHECK_FALSE(Exists(second));
  for (const std::string& path : others) CHECK(Exists(path));
  CHECK(Exists(link));
}

}  // namespace
}  // namespace penstock
