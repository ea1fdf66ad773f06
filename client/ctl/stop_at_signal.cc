#include "client/ctl/stop_at_signal.h"

#include <ctime>

namespace penstock::ctl {
namespace {

constexpr int64_t kLookNs = 50'000'000;

}  // namespace

StopAtSignal::StopAtSignal() : scope_(&is_stopped_) {
  sigemptyset(&taken_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action = {};
    // One that is ignored would be told all the same while it is blocked.
    if (sigaction(number, nullptr, &action) == 0 && action.sa_handler != SIG_IGN)
      sigaddset(&taken_, number);
  }
  pthread_sigmask(SIG_BLOCK, &taken_, &before_);
  thread_ = std::thread([this] { Wait(); });
}

StopAtSignal::~StopAtSignal() {
  is_over_ = true;
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  if (signal_ == 0) return;
  signal(signal_, SIG_DFL);
  raise(signal_);
}

void StopAtSignal::Wait() {
  const timespec look = {0, kLookNs};
  while (!is_over_) {
    const int number = sigtimedwait(&taken_, nullptr, &look);
    if (number <= 0) continue;
    signal_ = number;
    is_stopped_ = true;
    // The next one is nobody's to wait for.
    signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &taken_, nullptr);
    return;
  }
}

}  // namespace penstock::ctl
