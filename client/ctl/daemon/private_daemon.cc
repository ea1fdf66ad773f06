#include "client/ctl/daemon/private_daemon.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/ctl/daemon/program_beside.h"

extern char** environ;

namespace penstock::ctl {
namespace {

constexpr char kOwnFolder[] = "/penstock-XXXXXX";
constexpr char kSocketName[] = "/penstock.sock";

struct Pipe {
  ring::Descriptor reading;
  ring::Descriptor writing;
};

absl::StatusOr<Pipe> MakePipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  return Pipe{ring::Descriptor(ends[0]), ring::Descriptor(ends[1])};
}

std::string TemporaryFolder() {
  for (const char* name : {"XDG_RUNTIME_DIR", "TMPDIR"}) {
    const char* folder = getenv(name);
    if (folder == nullptr || folder[0] != '/' || access(folder, W_OK) != 0) continue;
    // A socket's path has an end.
    if (strlen(folder) + sizeof(kOwnFolder) + sizeof(kSocketName) <= sizeof(sockaddr_un::sun_path))
      return folder;
  }
  return "/tmp";
}

}  // namespace

absl::StatusOr<std::unique_ptr<PrivateDaemon>> PrivateDaemon::Start() {
  absl::StatusOr<Pipe> owner = MakePipe();
  absl::StatusOr<Pipe> ready = MakePipe();
  if (!owner.ok()) return owner.status();
  if (!ready.ok()) return ready.status();
  std::unique_ptr<PrivateDaemon> daemon(new PrivateDaemon);
  daemon->folder_ = absl::StrCat(TemporaryFolder(), kOwnFolder);
  if (mkdtemp(daemon->folder_.data()) == nullptr) {
    const int error = errno;
    const std::string pattern = std::exchange(daemon->folder_, "");
    return absl::ErrnoToStatus(error, absl::StrCat("cannot make a temporary folder ", pattern));
  }
  daemon->socket_ = daemon->folder_ + kSocketName;
  daemon->owner_ = std::move(owner->writing);
  absl::Status status = daemon->Spawn(owner->reading, ready->writing);
  if (!status.ok()) return status;

  // The daemon's copy of the end is then the only one: its death reads as the end of the file.
  { const ring::Descriptor closed = std::move(ready->writing); }
  char byte;
  ssize_t got;
  do {
    got = read(ready->reading.get(), &byte, 1);
  } while (got < 0 && errno == EINTR);
  if (got != 1) {
    return absl::UnavailableError("the private penstockd ended while it started; see above");
  }
  return daemon;
}

absl::Status PrivateDaemon::Spawn(const ring::Descriptor& owner_end,
                                  const ring::Descriptor& ready_end) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A duplicate onto itself takes the close-on-exec mark away.
  posix_spawn_file_actions_adddup2(&actions, owner_end.get(), owner_end.get());
  posix_spawn_file_actions_adddup2(&actions, ready_end.get(), ready_end.get());
  std::vector<std::string> words = {ProgramBeside("penstockd"),
                                    "--socket",
                                    socket_,
                                    "--log-level",
                                    "error",  // its owner reports what goes wrong
                                    "--exit-with-parent",
                                    absl::StrCat(owner_end.get()),
                                    "--ready-fd",
                                    absl::StrCat(ready_end.get())};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int error =
      posix_spawnp(&pid_, words[0].c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return absl::OkStatus();
  pid_ = 0;
  return CannotStart(words[0], error);
}

void PrivateDaemon::Kill() {
  if (pid_ > 0) kill(pid_, SIGKILL);
}

PrivateDaemon::~PrivateDaemon() {
  { const ring::Descriptor closed = std::move(owner_); }
  if (pid_ > 0) {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  if (folder_.empty()) return;
  // What a daemon that was killed has left.
  unlink(socket_.c_str());
  unlink((socket_ + ".lock").c_str());
  rmdir(folder_.c_str());
}

}  // namespace penstock::ctl
