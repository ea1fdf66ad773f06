// Accepts connections on the daemon's socket and lets in whom the configuration allows.
//
// Threads:  the event loop's.
// Owns:     a spare descriptor; the listening descriptor stays the caller's.
// Limits:   without free descriptors a connection is accepted on the spare one and closed, so that
//           it is refused rather than left waiting, and the loop does not spin.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"
#include "ring/liveness.h"
#include "server/service/socket/access.h"
#include "server/service/socket/event_loop.h"

namespace penstock {

// Somebody who has connected and was let in.
struct Visitor {
  ring::Descriptor socket;  // non-blocking
  pid_t pid = 0;
  Identity who;
  ring::Descriptor pidfd;  // as in ring::Peer
};

class Listener {
 public:
  // `access` must outlive it.
  static absl::StatusOr<std::unique_ptr<Listener>> Create(EventLoop& loop, int listening,
                                                          Access& access,
                                                          std::function<void(Visitor)> on_visitor);
  ~Listener();

 private:
  Listener(EventLoop& loop, int listening, Access& access, std::function<void(Visitor)> on_visitor);
  absl::Status Arm();
  void AcceptAll();
  void Admit(ring::Descriptor socket);
  void RefuseOne();
  // Counts it; true at powers of two, so that nobody fills the log by knocking.
  bool CountRefusal();

  EventLoop& loop_;
  const int listening_;
  Access& access_;
  const std::function<void(Visitor)> on_visitor_;
  ring::Descriptor spare_;
  EventLoop::Id watch_ = 0;
  EventLoop::Id pause_ = 0;
  uint64_t refused_ = 0;
};

}  // namespace penstock
