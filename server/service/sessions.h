// The attached consumers: gives each its ring's descriptors and gets its leases back when it leaves
// or dies.
//
// Threads:  the event loop's.
// Owns:     each consumer's socket and pidfd, and a reference to its pipeline.
// Limits:   `max_consumers`.
#pragma once

#include <cstdint>
#include <map>
#include <memory>

#include "ring/attach.h"
#include "server/service/event_loop.h"
#include "server/service/listener.h"
#include "server/service/pipeline_table.h"

namespace penstock {

class Sessions {
 public:
  Sessions(EventLoop& loop, PipelineTable& table, size_t max_consumers)
      : loop_(loop), table_(table), max_consumers_(max_consumers) {}
  ~Sessions();

  // Answers the request; with an error the connection is closed.
  void Attach(Visitor visitor, const ring::ParsedRequest& request);

  size_t size() const { return sessions_.size(); }

 private:
  struct Session {
    Visitor visitor;
    std::shared_ptr<Pipeline> pipeline;
    uint32_t consumer = 0;
    EventLoop::Id socket_watch = 0;
    EventLoop::Id process_watch = 0;
  };
  using Key = uint64_t;

  ring::Status TryAttach(const Visitor& visitor, const ring::ParsedRequest& request,
                         Session* session, ring::ConsumerHandle* handle);
  ring::Status WatchOver(Key key, Session& session);
  void End(Key key, const char* why);

  EventLoop& loop_;
  PipelineTable& table_;
  const size_t max_consumers_;
  Key next_key_ = 0;
  std::map<Key, Session> sessions_;
};

}  // namespace penstock
