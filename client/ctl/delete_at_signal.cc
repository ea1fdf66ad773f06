#include "client/ctl/delete_at_signal.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "base/new_thread.h"
#include "client/ctl/daemon_connection.h"
#include "client/ctl/ending_signals.h"

namespace penstock::ctl {

DeleteAtSignal::DeleteAtSignal(std::string socket)
    : socket_(std::move(socket)), taken_(BlockEndingSignals(&before_)) {
  signals_ = ring::Descriptor(signalfd(-1, &taken_, SFD_CLOEXEC));
  end_ = ring::Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!signals_ || !end_) {
    // Then the program ends as it would without this.
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    return;
  }
  absl::StatusOr<std::thread> thread = NewThread("signals", [this] { Wait(); });
  if (thread.ok()) {
    thread_ = *std::move(thread);
  } else {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
}

DeleteAtSignal::~DeleteAtSignal() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  while (write(end_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
  thread_.join();
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void DeleteAtSignal::Wait() {
  pollfd ready[2] = {{signals_.get(), POLLIN, 0}, {end_.get(), POLLIN, 0}};
  while (true) {
    if (poll(ready, 2, -1) < 0) continue;
    signalfd_siginfo signal = {};
    if (ready[0].revents != 0 && read(signals_.get(), &signal, sizeof(signal)) > 0)
      EndBy(static_cast<int>(signal.ssi_signo));
    if (ready[1].revents != 0) return;
  }
}

void DeleteAtSignal::EndBy(int number) {
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &taken_, nullptr);
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    std::fputs("penstock run: ends when its pipeline can be deleted; a second signal ends it now\n",
               stderr);
    lock.lock();
  }
  // What is told of the pipeline's end stays untold: the lock is kept until the end.
  if (!pipeline_.empty()) {
    auto daemon = DaemonConnection::Open(socket_);
    const absl::Status deleted = daemon.ok() ? daemon->Delete(pipeline_) : daemon.status();
    if (!deleted.ok()) Report("run", deleted);
  }
  raise(number);
  _exit(128 + number);
}

}  // namespace penstock::ctl
