// The configuration in force. SIGHUP puts another one in its place, as a whole or not at all.
//
// Threads:  safe from any thread; whoever has taken a snapshot keeps it as long as he likes.
// Cost:     Get() is a lock and a count.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "penstock/v1/server.pb.h"

namespace penstock {

class Settings {
 public:
  // `config` is complete (daemon_config.h).
  explicit Settings(v1::DaemonConfig config)
      : config_(std::make_shared<const v1::DaemonConfig>(std::move(config))) {}

  std::shared_ptr<const v1::DaemonConfig> Get() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return config_;
  }

  // FailedPrecondition names a field that differs and is only read at the start; nothing is taken
  // then.
  absl::Status Replace(v1::DaemonConfig config);

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const v1::DaemonConfig> config_;  // under mutex_
};

}  // namespace penstock
