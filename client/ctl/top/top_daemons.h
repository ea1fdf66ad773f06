// The daemons that `penstock top` shows, and what each of them runs.
//
// Threads:  one.
// Owns:     a connection to each daemon, which is opened anew where one comes back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/ctl/daemon/daemon_connection.h"
#include "penstock/v1/control.pb.h"

namespace penstock::ctl {

// What one daemon runs.
struct TopDaemon {
  std::string socket;
  bool is_named = true;  // by the user, or by default
  std::vector<v1::PipelineStats> pipelines;
};

// The daemon that was named; without a name the default one and, found anew at each look, those
// that nobody has named.
class TopDaemons {
 public:
  explicit TopDaemons(const std::string& socket);

  // `name`: that pipeline alone; "": all. An error where no daemon answers.
  absl::StatusOr<std::vector<TopDaemon>> Ask(const std::string& name);

 private:
  absl::StatusOr<TopDaemon> AskOne(const std::string& socket, const std::string& name);

  const std::string socket_;
  const bool finds_;
  std::map<std::string, DaemonConnection> open_;
};

}  // namespace penstock::ctl
