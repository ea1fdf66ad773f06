#include "client/ctl/stop_at_signal.h"

#include <ctime>
#include <utility>

#include "base/new_thread.h"
#include "client/ctl/ending_signals.h"

namespace penstock::ctl {
namespace {

constexpr int64_t kLookNs = 50'000'000;

}  // namespace

StopAtSignal::StopAtSignal() : taken_(BlockEndingSignals(&before_)), scope_(&is_stopped_) {
  absl::StatusOr<std::thread> thread = NewThread("signals", [this] { Wait(); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    // Then the program ends as it would without this.
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

StopAtSignal::~StopAtSignal() {
  if (!thread_.joinable()) return;
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
