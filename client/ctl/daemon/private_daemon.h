// A penstockd that serves this process alone and ends with it, however it ends: the daemon holds
// the reading end of a pipe whose writing end only this process has, and the kernel closes that end
// even after kill -9. It then removes its socket and the temporary folder made for it.
//
// Threads:  one.
// Owns:     the daemon's process and its folder.
// Cost:     the start of a process; no polling.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ring/descriptor.h"

namespace penstock::ctl {

class PrivateDaemon {
 public:
  // The penstockd beside this program, else the one of PATH. Returns when it accepts connections.
  static absl::StatusOr<std::unique_ptr<PrivateDaemon>> Start();
  // Ends the daemon and waits for it.
  ~PrivateDaemon();

  // As a crash would, at once.
  void Kill();

  const std::string& socket() const { return socket_; }

 private:
  PrivateDaemon() = default;
  absl::Status Spawn(const ring::Descriptor& owner_end, const ring::Descriptor& ready_end);

  std::string folder_;
  std::string socket_;
  ring::Descriptor owner_;  // the writing end
  pid_t pid_ = 0;
};

}  // namespace penstock::ctl
