// What a daemon says to the service manager that started it (systemd), and what it takes from it:
// sd_notify(3), sd_listen_fds(3) and sd_watchdog_enabled(3), whose protocols are three environment
// variables and a datagram.
//
// Threads:  Create() from the first thread, before others start: it changes the environment. The
//           rest from any thread.
// Owns:     the listening socket, until it is taken, and the one that it tells by: signs of life
//           need no descriptor of their own where there are no more.
// Cost:     a system call a message, which never waits; nothing without a service manager.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ring/descriptor.h"

namespace penstock {

class ServiceManager {
 public:
  // Reads and removes NOTIFY_SOCKET, LISTEN_FDS, LISTEN_PID and WATCHDOG_USEC: a child of this
  // process is not what they are meant for. FailedPrecondition when more than one socket comes, or
  // one that is no listening Unix socket.
  static absl::StatusOr<ServiceManager> Create();

  // "READY=1", "STOPPING=1", "WATCHDOG=1", "STATUS=…": lines of sd_notify(3).
  void Tell(std::string_view state) const;

  // The socket that the service manager listens at, if it does; once.
  ring::Descriptor TakeSocket() { return std::move(socket_); }

  // How long the service manager waits for a WATCHDOG=1 before it kills; zero: for ever.
  absl::Duration watchdog() const { return watchdog_; }

 private:
  std::string notify_path_;
  ring::Descriptor notify_;  // none without a path
  ring::Descriptor socket_;
  absl::Duration watchdog_ = absl::ZeroDuration();
};

}  // namespace penstock
