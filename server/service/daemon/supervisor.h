// A process that starts the daemon as its child, and again when it dies.
//
//   killed by a signal, or an exit with a code that is none of its own: again, at once
//   again and again within seconds: with a growing delay
//   an exit with 0, 1, 2 or 78, or after a stop was asked for: the supervisor ends with that code, unless 1 is that of one that could not begin
//   after another one had served: then with a growing delay, as where no process can be made
//
// Threads:  one, and it must be the only one of the process: it forks.
// Cost:     a sleeping process of a few hundred KiB.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/time/time.h"

namespace penstock {

// How long to wait before the next start, after a life of `lived`; `delay` is what was waited
// before that life.
absl::Duration DelayAfter(absl::Duration lived, absl::Duration delay);

// Runs `child` in a child process, and returns the exit code for this one. SIGTERM, SIGINT, SIGHUP,
// SIGUSR1 and SIGUSR2 are handed on to the child.
int Supervise(const std::function<int()>& child);

}  // namespace penstock
