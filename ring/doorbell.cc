#include "ring/doorbell.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>

#include "ring/nanoseconds.h"

namespace penstock::ring {
namespace {

Status SystemError(const char* what) {
  return {Code::kResourceExhausted, std::string(what) + ": " + std::strerror(errno)};
}

}  // namespace

Status Doorbell::Create() {
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  own_bell_ = Descriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_ || !own_bell_) return SystemError("cannot create a doorbell");
  return Watch(own_bell_.get());
}

Status Doorbell::Watch(int bell_fd) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLET;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, bell_fd, &event) != 0) {
    return SystemError("cannot watch a bell");
  }
  return {};
}

void Doorbell::Unwatch(int bell_fd) { epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, bell_fd, nullptr); }

void Doorbell::Ring() { eventfd_write(own_bell_.get(), 1); }

bool Doorbell::BecomeWatcher(uint64_t timeout_ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!watched_) {
    watched_ = true;
    return true;
  }
  const uint64_t watch = num_watches_;
  // Ten years stand for ever: a sum of time points must not overflow.
  const std::chrono::nanoseconds timeout(std::min(timeout_ns, uint64_t{315'000'000'000'000'000}));
  watch_ended_.wait_for(lock, timeout, [&] { return num_watches_ != watch; });
  return false;
}

void Doorbell::EndWatch() {
  std::lock_guard<std::mutex> lock(mutex_);
  watched_ = false;
  ++num_watches_;
  watch_ended_.notify_all();
}

void Doorbell::Sleep(uint64_t timeout_ns) {
  // Rounded up to milliseconds, so that a short time-out is no busy loop.
  const uint64_t timeout_ms =
      std::min<uint64_t>(timeout_ns / kNsPerMs + (timeout_ns % kNsPerMs != 0), 1'000'000'000);
  epoll_event events[16];
  epoll_wait(epoll_.get(), events, 16, static_cast<int>(timeout_ms));
}

}  // namespace penstock::ring
