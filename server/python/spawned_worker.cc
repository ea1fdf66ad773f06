#include "server/python/spawned_worker.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::python {
namespace {

// Where those are kept until the process has its own: no number that is put in another's place.
constexpr int kBeyond = 32;
constexpr int kStackSignal = SIGUSR2;

// The script is run by its path, but not as sys.argv[0]: its folder is no place for modules.
constexpr char kBootstrap[] =
    "import sys;"
    "exec(compile(open(sys.argv[1],'rb').read(),sys.argv[1],'exec'),"
    "{'__name__':'penstock._worker._start','__file__':sys.argv[1]})";

struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::vector<char*> Pointers(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

bool IsFolder(const std::string& path) {
  struct stat found = {};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

int Spawn(const FunctionFile& function, size_t configuration_bytes,
          const std::array<int, kNumOfWorker>& files, pid_t* pid) {
  SpawnSettings settings;
  posix_spawn_file_actions_addopen(&settings.actions, 0, "/dev/null", O_RDONLY, 0);
  // What a function prints is seen where the daemon's own messages are.
  posix_spawn_file_actions_adddup2(&settings.actions, 2, 1);
  for (int i = 0; i < kNumOfWorker; ++i)
    posix_spawn_file_actions_adddup2(&settings.actions, files[i], kFirstOfWorker + i);
  posix_spawn_file_actions_addclosefrom_np(&settings.actions, kFirstOfWorker + kNumOfWorker);
  if (IsFolder(function.folder))
    posix_spawn_file_actions_addchdir_np(&settings.actions, function.folder.c_str());
  sigset_t signals;
  sigemptyset(&signals);
  posix_spawnattr_setsigmask(&settings.attributes, &signals);
  sigfillset(&signals);
  posix_spawnattr_setsigdefault(&settings.attributes, &signals);
  posix_spawnattr_setflags(&settings.attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  std::vector<std::string> arguments = {function.program};
  arguments.insert(arguments.end(), function.flags.begin(), function.flags.end());
  arguments.insert(arguments.end(), {"-c", kBootstrap, function.script,
                                     absl::StrCat(configuration_bytes), absl::StrCat(getpid())});
  std::vector<std::string> environment = function.environment;
  return posix_spawn(pid, function.program.c_str(), &settings.actions, &settings.attributes,
                     Pointers(arguments).data(), Pointers(environment).data());
}

}  // namespace

absl::StatusOr<std::unique_ptr<WorkerProcess>> SpawnedWorker::Start(
    const FunctionFile& function, const std::string& configuration) {
  std::unique_ptr<SpawnedWorker> worker(new SpawnedWorker);
  const absl::StatusOr<ring::Descriptor> theirs = worker->Open(configuration);
  if (!theirs.ok()) return theirs.status();
  std::array<ring::Descriptor, kNumOfWorker> moved;
  std::array<int, kNumOfWorker> files = {function.file->get(), worker->desk().inputs(),
                                         worker->desk().outputs(), theirs->get(),
                                         worker->stack_file()};
  for (int i = 0; i < kNumOfWorker; ++i) {
    moved[i] = ring::Descriptor(fcntl(files[i], F_DUPFD_CLOEXEC, kBeyond));
    if (!moved[i]) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no descriptors for a Python worker process: ", std::strerror(errno), "; see ulimit -n"));
    }
    files[i] = moved[i].get();
  }
  if (const int error = Spawn(function, configuration.size(), files, &worker->pid_); error != 0) {
    worker->pid_ = -1;
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot start a Python worker process: ", function.program, ": ", std::strerror(error)));
  }
#ifdef SYS_pidfd_open
  worker->pidfd_ = ring::Descriptor(static_cast<int>(syscall(SYS_pidfd_open, worker->pid_, 0)));
#endif
  return worker;
}

SpawnedWorker::~SpawnedWorker() {
  if (pid_ < 0 || !ended_.empty()) return;
  Kill();
  Wait();
}

void SpawnedWorker::AskForStack() {
  if (ended_.empty()) kill(pid_, kStackSignal);
}

void SpawnedWorker::Kill() {
  // Not a process that has got its number since.
  if (ended_.empty()) kill(pid_, SIGKILL);
}

std::string SpawnedWorker::Wait() {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::seconds(1);
  while (ended_.empty()) {
    int status = 0;
    const pid_t got = waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      ended_ = WIFSIGNALED(status) ? absl::StrCat("SIG", sigabbrev_np(WTERMSIG(status))
                                                             ? sigabbrev_np(WTERMSIG(status))
                                                             : "?")
                                   : absl::StrCat("exit status ", WEXITSTATUS(status));
    } else if (got < 0 && errno != EINTR) {
      ended_ = "an end that nobody saw";
    } else if (steady_clock::now() > until) {
      return "no end within a second";
    } else {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  return ended_;
}

}  // namespace penstock::python
