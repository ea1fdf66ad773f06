#include "server/service/socket/event_loop.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "base/nanoseconds.h"

namespace penstock {
namespace {

constexpr uint64_t kWakeId = 0;

int Register(int epoll, int fd, uint32_t events, uint64_t id) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = id;
  return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventLoop>> EventLoop::Create() {
  ring::Descriptor epoll(epoll_create1(EPOLL_CLOEXEC));
  ring::Descriptor wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll || !wake || Register(epoll.get(), wake.get(), EPOLLIN, kWakeId) != 0) {
    return absl::ErrnoToStatus(errno, "cannot create the event loop");
  }
  return std::unique_ptr<EventLoop>(new EventLoop(std::move(epoll), std::move(wake)));
}

absl::StatusOr<EventLoop::Id> EventLoop::Watch(int fd, uint32_t events,
                                               std::function<void(uint32_t)> callback) {
  const Id id = next_id_++;
  if (Register(epoll_.get(), fd, events, id) != 0) {
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch descriptor ", fd));
  }
  watched_[id] = {fd, std::move(callback)};
  return id;
}

void EventLoop::Unwatch(Id id) {
  const auto found = watched_.find(id);
  if (found == watched_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  watched_.erase(found);
}

int64_t EventLoop::Now() { return clock_.Look(MonotonicNs()); }

EventLoop::Id EventLoop::StartTimer(absl::Duration delay, std::function<void()> callback) {
  const Id id = next_id_++;
  timers_[{Now() + absl::ToInt64Nanoseconds(delay), id}] = std::move(callback);
  return id;
}

void EventLoop::CancelTimer(Id id) {
  const auto found = std::find_if(timers_.begin(), timers_.end(),
                                  [id](const auto& timer) { return timer.first.second == id; });
  if (found != timers_.end()) timers_.erase(found);
}

void EventLoop::RunTimers() {
  while (!timers_.empty() && timers_.begin()->first.first <= Now()) {
    const auto callback = std::move(timers_.begin()->second);
    timers_.erase(timers_.begin());
    callback();
  }
}

int EventLoop::MillisecondsToNextTimer() {
  if (timers_.empty()) return -1;
  // Rounded up, so that the timer is due when the wait is over.
  const int64_t ns = std::max<int64_t>(timers_.begin()->first.first - Now(), 0);
  return static_cast<int>(std::min<int64_t>((ns + kNsPerMs - 1) / kNsPerMs, 1 << 30));
}

void EventLoop::Run() {
  for (;;) {
    RunTimers();
    epoll_event events[64];
    const int wait_ms = MillisecondsToNextTimer();
    const int count = epoll_wait(epoll_.get(), events, 64, wait_ms);
    // Without a timer nobody waits for anything to be over.
    clock_.Look(MonotonicNs(), std::max(wait_ms, 0) * kNsPerMs);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == kWakeId) {
        eventfd_t count_of_wakes;
        eventfd_read(wake_.get(), &count_of_wakes);
        if (stopped_) return;
        RunPosted();
        continue;
      }
      // Looked up by id and not by descriptor: an earlier callback of this round may have closed
      // the descriptor, and another may have got its number.
      const auto found = watched_.find(events[i].data.u64);
      if (found == watched_.end()) continue;
      const auto callback = found->second.callback;  // may remove itself
      callback(events[i].events);
    }
  }
}

void EventLoop::Stop() {
  stopped_ = true;
  Wake();
}

void EventLoop::Post(std::function<void()> callback) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    posted_.push_back(std::move(callback));
  }
  Wake();
}

void EventLoop::RunPosted() {
  std::vector<std::function<void()>> posted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    posted.swap(posted_);
  }
  for (const auto& callback : posted) callback();
}

void EventLoop::Wake() { eventfd_write(wake_.get(), 1); }

}  // namespace penstock
