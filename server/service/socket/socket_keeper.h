// Keeps the daemon within reach: once a second it looks whether the socket's file and the lock
// beside it still stand where clients look for them, and puts back what somebody has removed, such
// as a cleaner of temporary folders. Connections and batches do not notice.
//
// Threads:  the event loop's.
// Owns:     the listener; the socket's file stays the caller's.
// Limits:   what has come in their place, another daemon or something that is no socket, is left
//           alone, and said once.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/service/socket/access.h"
#include "server/service/socket/event_loop.h"
#include "server/service/socket/listener.h"
#include "server/service/socket/socket_file.h"

namespace penstock {

class SocketKeeper {
 public:
  // All must outlive it.
  static absl::StatusOr<std::unique_ptr<SocketKeeper>> Create(
      EventLoop& loop, SocketFile& file, Access& access, std::function<void(Visitor)> on_visitor);
  ~SocketKeeper();

 private:
  SocketKeeper(EventLoop& loop, SocketFile& file, Access& access,
               std::function<void(Visitor)> on_visitor);
  absl::Status Listen();
  void Look();

  EventLoop& loop_;
  SocketFile& file_;
  Access& access_;
  const std::function<void(Visitor)> on_visitor_;
  std::unique_ptr<Listener> listener_;
  EventLoop::Id timer_ = 0;
  std::string told_;  // why it could not be put back
};

}  // namespace penstock
