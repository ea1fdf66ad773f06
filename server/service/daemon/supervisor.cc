#include "server/service/daemon/supervisor.h"

#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace penstock {
namespace {

// A daemon that lived so long was no crash at its start.
constexpr absl::Duration kSoundLife = absl::Milliseconds(500);
constexpr absl::Duration kFirstDelay = absl::Milliseconds(100);
constexpr absl::Duration kLongestDelay = absl::Seconds(5);

sigset_t HandledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}) {
    sigaddset(&signals, number);
  }
  return signals;
}

bool IsStop(int number) { return number == SIGTERM || number == SIGINT; }

absl::Time MonotonicNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return absl::TimeFromTimespec(now);
}

// Waits for the child's end and hands signals on to it meanwhile. Returns its wait status.
int WaitFor(pid_t child, const sigset_t& signals, bool* stopped) {
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return status;
    const int number = sigwaitinfo(&signals, nullptr);
    if (number < 0 || number == SIGCHLD) continue;
    if (IsStop(number)) *stopped = true;
    kill(child, number);
  }
}

// Sleeps; false when a stop was asked for meanwhile.
bool Pause(absl::Duration delay, const sigset_t& signals) {
  const absl::Time end = MonotonicNow() + delay;
  while (true) {
    const absl::Duration left = end - MonotonicNow();
    if (left <= absl::ZeroDuration()) return true;
    const timespec timeout = absl::ToTimespec(left);
    if (const int number = sigtimedwait(&signals, nullptr, &timeout); IsStop(number)) return false;
  }
}

}  // namespace

absl::Duration DelayAfter(absl::Duration lived, absl::Duration delay) {
  if (lived >= kSoundLife) return absl::ZeroDuration();
  if (delay == absl::ZeroDuration()) return kFirstDelay;
  return std::min(2 * delay, kLongestDelay);
}

int Supervise(const std::function<int()>& child) {
  const sigset_t signals = HandledSignals();
  // Who ignores it, as its parent may have done, hears of no child's end.
  signal(SIGCHLD, SIG_DFL);
  sigset_t before;
  sigprocmask(SIG_BLOCK, &signals, &before);
  absl::Duration delay = absl::ZeroDuration();
  bool had_sound_life = true;
  // Whether a daemon of this supervisor has ever served: what keeps the next one from it may pass,
  // as a machine without threads does.
  bool has_served = false;
  while (true) {
    const absl::Time start = MonotonicNow();
    const pid_t pid = fork();
    if (pid < 0) {
      std::fprintf(stderr, "penstockd: cannot start the daemon: %s\n", std::strerror(errno));
      if (!has_served) return 1;
      delay = std::max(kFirstDelay, std::min(2 * delay, kLongestDelay));
      if (!Pause(delay, signals)) return 0;
      continue;
    }
    if (pid == 0) {
      sigprocmask(SIG_SETMASK, &before, nullptr);
      std::exit(child());
    }
    bool stopped = false;
    const int status = WaitFor(pid, signals, &stopped);
    const absl::Duration lived = MonotonicNow() - start;
    if (WIFEXITED(status)) {
      const int code = WEXITSTATUS(status);
      const bool may_pass = code == 1 && has_served && lived < kSoundLife;
      if (stopped || code == 0 || (code == 1 && !may_pass) || code == 2 || code == 78) return code;
    } else if (stopped) {
      return 128 + WTERMSIG(status);
    }
    has_served = has_served || lived >= kSoundLife;
    // The first crash in a while is made good at once, whatever the life before it was.
    delay = had_sound_life ? absl::ZeroDuration() : DelayAfter(lived, delay);
    had_sound_life = lived >= kSoundLife;
    std::fprintf(stderr, "penstockd: the daemon (process %d) %s %d; it is started again\n", pid,
                 WIFSIGNALED(status) ? "was killed by signal" : "ended with",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    if (!Pause(delay, signals)) return 0;
  }
}

}  // namespace penstock
