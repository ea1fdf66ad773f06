// What has happened to the pipelines of a daemon: the last events, and those who are told of
// further ones.
//
// Threads:  safe from any thread. Publish() never waits for a listener.
// Owns:     the events that are kept, and a queue for each listener.
// Limits:   kKept events; kKept wait for a listener, and what is beyond them is counted as lost to
//           it.
// Cost:     Publish() is a lock and a call of each listener's `wanted`.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "penstock/v1/control.pb.h"

namespace penstock {

class EventLog {
 public:
  static constexpr size_t kKept = 1024;
  static constexpr int kEventsAtATime = 256;

  // `unix_ms`: the clock that events are stamped by.
  explicit EventLog(std::function<int64_t()> unix_ms) : unix_ms_(std::move(unix_ms)) {}
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // Gives the event its number and its time.
  void Publish(v1::Event event);

  // Whether a listener is to hear of a pipeline. It is called under a lock and must not publish.
  using Wanted = std::function<bool(const std::string& pipeline)>;

  class Listener {
   public:
    Listener(EventLog& log, Wanted wanted) : log_(log), wanted_(std::move(wanted)) {}
    // The log must still be there.
    ~Listener();

    // The events that wait for it, at most kEventsAtATime, and how many were lost in front of them;
    // none when the time is over before there are any. False when the log has been closed.
    bool Take(absl::Duration timeout, v1::WatchEventsResponse* out);
    bool HasMore() const;

   private:
    friend class EventLog;

    EventLog& log_;
    const Wanted wanted_;
    std::deque<std::shared_ptr<const v1::Event>> waiting_;  // under log_.mutex_
    uint64_t lost_ = 0;                                     // under log_.mutex_
  };

  // Begins with those of the kept events that have a higher number than `after`.
  std::unique_ptr<Listener> Listen(uint64_t after, Wanted wanted);

  // Ends every Take(), now and later.
  void Close();
  bool closed() const;

 private:
  const std::function<int64_t()> unix_ms_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t last_number_ = 0;                           // under mutex_
  std::deque<std::shared_ptr<const v1::Event>> kept_;  // under mutex_
  std::vector<Listener*> listeners_;                   // under mutex_
  bool closed_ = false;                                // under mutex_
};

// An event of a pipeline that has nothing but its kind and a text.
v1::Event MakeEvent(const std::string& pipeline, v1::EventKind kind, const std::string& text);

}  // namespace penstock
