// A penstockd, from its socket to its last pipeline.
//
// Threads:  Run() uses the caller's thread as its event loop. REQUIRES: SIGTERM, SIGINT and SIGHUP
//           are blocked in every thread of the process, by BlockStopSignals() before the first one
//           starts.
// Owns:     everything; all of it is gone when Run() returns.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "penstock/v1/server.pb.h"
#include "server/service/daemon/service_manager.h"

namespace penstock {

struct DaemonOptions {
  v1::DaemonConfig config;  // complete (daemon_config.h)
  // The reading end of a pipe whose writing end only the owner holds: the daemon stops at its
  // hang-up and is private. Or the owner's pidfd. -1: none.
  int owner_fd = -1;
  // Closed, after one byte was written to it, when the daemon accepts connections. -1: none.
  int ready_fd = -1;
  // What SIGHUP asks for: the configuration, read again and complete. Null: SIGHUP stops the
  // daemon, as the end of a terminal session does.
  std::function<absl::StatusOr<v1::DaemonConfig>()> read_config = nullptr;
  ServiceManager service_manager = {};
  // The folder in which it keeps what it has to know after a crash; "": it forgets.
  std::string state_directory = {};
  // Whether it is an error when that folder cannot be used; else it is a warning, and it forgets.
  bool state_is_required = false;
  // How long it waits for consumers and ranks that have been lost.
  absl::Duration rejoin = absl::Seconds(10);
};

void BlockStopSignals();

// Returns OK after SIGTERM, SIGINT or the owner's end. A second one of them ends the process at
// once, with whatever is left then.
absl::Status RunDaemon(DaemonOptions options);

}  // namespace penstock
