// Where the daemon sleeps until a consumer's bell or its own rings.
//
// Bells are eventfds watched edge-triggered and never read: each ring is one wake-up, a ring before
// the sleep is not lost, and nothing that a client does with its descriptor can block the daemon.
// A futex in each control page would need futex_waitv (Linux 5.16) to wait for several consumers.
//
// Threads:  every call is safe from any thread; of several threads in Wait() one sleeps on the
//           bells and wakes the others.
// Owns:     the daemon's own bell; a consumer's is watched from Watch() until it is closed by its
//           owner and every client.
// Cost:     a system call for Wait(), for Ring(), and for a client's ring.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "ring/descriptor.h"
#include "ring/status.h"

namespace penstock::ring {

class Doorbell {
 public:
  Status Create();

  Status Watch(int bell_fd);
  void Unwatch(int bell_fd);

  // Wakes whoever waits, or the next who would.
  void Ring();

  // Sleeps until a ring or the time is over. The thread that is to watch the bells calls
  // `may_sleep` first, and does not sleep when it says false; it calls `woken` afterwards.
  template <typename MaySleep, typename Woken>
  void Wait(uint64_t timeout_ns, MaySleep may_sleep, Woken woken) {
    if (!BecomeWatcher(timeout_ns)) return;
    if (may_sleep()) Sleep(timeout_ns);
    woken();
    EndWatch();
  }

 private:
  // False when another thread watches: then it has waited for that one to wake up.
  bool BecomeWatcher(uint64_t timeout_ns);
  void EndWatch();
  void Sleep(uint64_t timeout_ns);

  Descriptor epoll_;
  Descriptor own_bell_;
  std::mutex mutex_;
  std::condition_variable watch_ended_;
  bool watched_ = false;      // under mutex_
  uint64_t num_watches_ = 0;  // under mutex_
};

}  // namespace penstock::ring
