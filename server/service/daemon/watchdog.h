// Finds workers that hang: whose pulse stands still although they have not gone to sleep, and who
// are not in a system call that waits for a disk or a network. Those are the machine's to end, and
// hold up their own pipeline only; a worker that spins or waits for a lock will never come back.
//
// Threads:  one.
// Owns:     what it has seen last.
// Cost:     two small files of /proc for each worker whose pulse stands still.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "server/engine/run/executor.h"

namespace penstock {

class Watchdog {
 public:
  // `waits_for_machine`: whether a thread is in such a system call.
  Watchdog(int64_t limit_ns, std::function<bool(int32_t thread)> waits_for_machine)
      : limit_ns_(limit_ns), waits_for_machine_(std::move(waits_for_machine)) {}

  // To be called a few times within the limit, with the workers of all pipelines. Returns the
  // threads that have hung for longer than the limit.
  std::vector<int32_t> Look(const std::vector<WorkerPulse>& pulses, int64_t now_ns);

 private:
  struct Seen {
    uint64_t beats = 0;
    int64_t since_ns = 0;
    bool current = false;
  };

  const int64_t limit_ns_;
  const std::function<bool(int32_t thread)> waits_for_machine_;
  std::map<int32_t, Seen> seen_;  // by thread
};

// Of this process's `thread`, by /proc. False for one that runs or waits for a lock. True where
// /proc cannot be read, as without descriptors: nobody is ended for what is not known.
bool WaitsForMachine(int32_t thread);

}  // namespace penstock
