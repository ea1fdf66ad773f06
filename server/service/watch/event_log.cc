#include "server/service/watch/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "base/utf8.h"

namespace penstock {

void EventLog::Publish(v1::Event event) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    event.set_number(++last_number_);
    event.set_time_unix_ms(unix_ms_());
    const auto shared = std::make_shared<const v1::Event>(std::move(event));
    kept_.push_back(shared);
    if (kept_.size() > kKept) kept_.pop_front();
    for (Listener* listener : listeners_) {
      if (!listener->wanted_(shared->pipeline())) continue;
      // The oldest ones go: who comes back wants to know how things stand.
      if (listener->waiting_.size() == kKept) {
        listener->waiting_.pop_front();
        ++listener->lost_;
      }
      listener->waiting_.push_back(shared);
    }
  }
  changed_.notify_all();
}

std::unique_ptr<EventLog::Listener> EventLog::Listen(uint64_t after, Wanted wanted) {
  auto listener = std::make_unique<Listener>(*this, std::move(wanted));
  std::lock_guard<std::mutex> lock(mutex_);
  for (const auto& event : kept_) {
    if (event->number() > after && listener->wanted_(event->pipeline()))
      listener->waiting_.push_back(event);
  }
  listeners_.push_back(listener.get());
  return listener;
}

EventLog::Listener::~Listener() {
  std::lock_guard<std::mutex> lock(log_.mutex_);
  std::erase(log_.listeners_, this);
}

bool EventLog::Listener::Take(absl::Duration timeout, v1::WatchEventsResponse* out) {
  std::unique_lock<std::mutex> lock(log_.mutex_);
  const auto has_something = [this] { return log_.closed_ || !waiting_.empty(); };
  // An endless time would wrap when it is added to now.
  if (timeout == absl::InfiniteDuration()) {
    log_.changed_.wait(lock, has_something);
  } else {
    log_.changed_.wait_for(lock, absl::ToChronoNanoseconds(timeout), has_something);
  }
  out->set_lost(std::exchange(lost_, 0));
  while (!waiting_.empty() && out->events_size() < kEventsAtATime) {
    *out->add_events() = *waiting_.front();
    waiting_.pop_front();
  }
  return !log_.closed_;
}

bool EventLog::Listener::HasMore() const {
  std::lock_guard<std::mutex> lock(log_.mutex_);
  return !waiting_.empty();
}

void EventLog::Close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  changed_.notify_all();
}

bool EventLog::closed() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

v1::Event MakeEvent(const std::string& pipeline, v1::EventKind kind, const std::string& text) {
  v1::Event event;
  event.set_pipeline(pipeline);
  event.set_kind(kind);
  // It may quote the name of a file.
  event.set_text(ReadableUtf8(text));
  return event;
}

}  // namespace penstock
