// The daemon's log: lines of text or JSON on the standard error, which never hold up whoever writes
// them. A line that a full pipe or disk does not take is lost and counted, and the count is told
// when lines pass again.
//
// Threads:  Start() and Configure() from one thread; logging (spdlog) from any. The data path does
//           not log.
// Owns:     a descriptor of its own for the same pipe or terminal, since whether writes wait is a
//           property that it would else share with other processes.
// Limits:   a line of kMaxLineBytes, the rest of it is cut; LogLimiter's.
#pragma once

#include <cstddef>

#include "penstock/v1/server.pb.h"

namespace penstock {

inline constexpr size_t kMaxLineBytes = 4096;

// Makes spdlog's default logger one that writes to descriptor `fd`, as `config` says.
void StartLog(const v1::DaemonConfig& config, int fd);

// Until the next ConfigureLog(). REQUIRES: StartLog().
void SetLogLevelNow(v1::LogLevel level);

// Takes the level and the limit of another configuration. REQUIRES: StartLog().
void ConfigureLog(const v1::DaemonConfig& config);

}  // namespace penstock
