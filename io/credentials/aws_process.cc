#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "base/stop_flag.h"
#include "io/credentials/aws_sources.h"

extern char** environ;

namespace penstock {
namespace {

constexpr int64_t kLongestNs = 60'000'000'000;
constexpr size_t kOutputBytesMax = 64 << 10;

// How long nobody looks whether it is wanted still.
constexpr int kLookMs = 50;

absl::Status WhyToEnd(int64_t end_ns) {
  if (IsStopped()) return absl::CancelledError("credential_process: not wanted any more");
  if (MonotonicNs() >= end_ns)
    return absl::DeadlineExceededError("credential_process takes more than 60 s");
  return absl::OkStatus();
}

// What it prints, until it closes its output.
absl::Status ReadAll(int fd, int64_t end_ns, std::string* output) {
  char buffer[4096];
  while (output->size() < kOutputBytesMax) {
    if (absl::Status status = WhyToEnd(end_ns); !status.ok()) return status;
    pollfd look{fd, POLLIN, 0};
    if (poll(&look, 1, kLookMs) == 0) continue;
    const ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return absl::ErrnoToStatus(errno, "cannot read what credential_process prints");
    if (got == 0) return absl::OkStatus();
    output->append(buffer, static_cast<size_t>(got));
  }
  return absl::DataLossError("credential_process prints more than 64 KiB");
}

// Its end, which may come long after that of its output.
absl::Status WaitForEnd(pid_t child, int64_t end_ns, int* ended) {
  while (true) {
    const pid_t found = waitpid(child, ended, WNOHANG);
    if (found == child) return absl::OkStatus();
    if (found < 0 && errno != EINTR) return absl::ErrnoToStatus(errno, "credential_process");
    if (absl::Status status = WhyToEnd(end_ns); !status.ok()) return status;
    poll(nullptr, 0, 1);
  }
}

}  // namespace

absl::StatusOr<Credentials> AwsFromProcess(const std::string& command) {
  int pipe_fds[2];
  if (pipe2(pipe_fds, O_CLOEXEC) != 0) return absl::ErrnoToStatus(errno, "cannot make a pipe");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipe_fds[1], STDOUT_FILENO);
  // What it says besides may hold a secret.
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own, so that its children end with it; the daemon's blocked signals are not its.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, "/bin/sh", &actions, &attributes,
                                const_cast<char* const*>(arguments), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  close(pipe_fds[1]);
  std::string output;
  const int64_t end_ns = MonotonicNs() + kLongestNs;
  absl::Status status = error == 0 ? ReadAll(pipe_fds[0], end_ns, &output)
                                   : absl::ErrnoToStatus(error, "cannot start credential_process");
  close(pipe_fds[0]);
  if (error != 0) return status;
  int ended = 0;
  if (status.ok()) status = WaitForEnd(child, end_ns, &ended);
  if (!status.ok()) {
    kill(-child, SIGKILL);
    waitpid(child, &ended, 0);
    return status;
  }
  if (!WIFEXITED(ended) || WEXITSTATUS(ended) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "credential_process ended with ", WIFEXITED(ended)
                                              ? absl::StrCat("status ", WEXITSTATUS(ended))
                                              : absl::StrCat("signal ", WTERMSIG(ended))));
  }
  return ParseAwsJson(output, "credential_process");
}

}  // namespace penstock
