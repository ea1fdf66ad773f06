// Waits for descriptors and deadlines on one thread and calls whoever asked.
//
// Threads:  Stop() and Post() from any thread; everything else on the thread that runs Run(), or
//           before it.
// Owns:     its epoll and wake-up descriptors; watched descriptors stay their owners' and are
//           removed before they are closed.
// Limits:   a callback must not block. Timers are due by running time (base/running_clock.h): a
//           pause of the process makes nobody late.
// Cost:     a system call a wake-up, a map look-up an event.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/monotonic_clock.h"
#include "base/running_clock.h"
#include "ring/descriptor.h"

namespace penstock {

class EventLoop {
 public:
  // A watched descriptor or a timer; 0 is none.
  using Id = uint64_t;

  static absl::StatusOr<std::unique_ptr<EventLoop>> Create();

  // `events` are epoll's; EPOLLHUP and EPOLLERR always come. ResourceExhausted when the kernel
  // takes no more.
  absl::StatusOr<Id> Watch(int fd, uint32_t events, std::function<void(uint32_t events)> callback);
  // No callback of `id` runs afterwards, whatever has already happened. Unknown ids are fine.
  void Unwatch(Id id);

  // Nanoseconds by which timers are due: the monotonic clock's, less the pauses of this process.
  int64_t Now();

  Id StartTimer(absl::Duration delay, std::function<void()> callback);
  void CancelTimer(Id id);

  // Returns after Stop().
  void Run();
  void Stop();

  // Has Run() call it, behind what was posted before; never when Run() has returned.
  void Post(std::function<void()> callback);

 private:
  struct Watched {
    int fd;
    std::function<void(uint32_t)> callback;
  };

  EventLoop(ring::Descriptor epoll, ring::Descriptor wake)
      : epoll_(std::move(epoll)), wake_(std::move(wake)), clock_(MonotonicNs()) {}
  void RunTimers();
  void RunPosted();
  void Wake();
  int MillisecondsToNextTimer();

  const ring::Descriptor epoll_;
  const ring::Descriptor wake_;
  RunningClock clock_;
  Id next_id_ = 1;
  std::map<Id, Watched> watched_;
  std::map<std::pair<int64_t, Id>, std::function<void()>> timers_;  // by due time, of Now()
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::vector<std::function<void()>> posted_;  // under mutex_
};

}  // namespace penstock
