// Finds out what a new connection wants by its first bytes: gRPC (an HTTP/2 preface), to attach to
// a ring, something about a spec, or whether the daemon is at work, which is answered here. A
// visitor who says nothing, or half of something, keeps nobody else waiting and is shown out after
// a time.
//
// Threads:  the event loop's.
// Owns:     the connections that have not said enough yet.
// Limits:   kMaxWaiting of them, then the oldest of whoever has most goes; each within `timeout()`.
#pragma once

#include <cstddef>
#include <functional>
#include <map>

#include "absl/time/time.h"
#include "ring/attach.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/fair_places.h"
#include "server/service/socket/listener.h"

namespace penstock {

class Reception {
 public:
  static constexpr size_t kMaxWaiting = 128;

  struct Destinations {
    // The preface is still unread.
    std::function<void(Visitor)> control;
    // The request has been read.
    std::function<void(Visitor, const ring::ParsedRequest&)> attach;
    // An operation on a spec; the memory file that came along, if any.
    std::function<void(Visitor, const ring::ParsedRequest&, ring::Descriptor)> spec;
    // Told of each who has to go for a newer one.
    std::function<void()> no_place;
  };

  Reception(EventLoop& loop, std::function<absl::Duration()> timeout, Destinations destinations)
      : loop_(loop), timeout_(std::move(timeout)), destinations_(std::move(destinations)) {}
  ~Reception();

  void Welcome(Visitor visitor);

  size_t waiting() const { return waiting_.size(); }

 private:
  struct Waiting {
    Visitor visitor;
    EventLoop::Id watch = 0;
    EventLoop::Id timer = 0;
  };
  using Ordinal = uint64_t;  // in the order of arrival

  void Listen(Ordinal ordinal, bool hung_up);
  Visitor Release(Ordinal ordinal);
  void MakeRoomFor(uid_t user);

  EventLoop& loop_;
  const std::function<absl::Duration()> timeout_;
  const Destinations destinations_;
  Ordinal next_ordinal_ = 0;
  std::map<Ordinal, Waiting> waiting_;
  FairPlaces places_;  // ordinals of waiting_
};

}  // namespace penstock
