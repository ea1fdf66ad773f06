// What an executor tells of itself to whoever watches it.
//
// Threads:  values.
// Cost:     a string or two a stage.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/order/away_workers.h"
#include "server/engine/run/helper_stats.h"
#include "server/engine/share/shared_stats.h"
#include "server/engine/tasks/calls_under_way.h"

namespace penstock {

struct KeptStats {
  std::string state;      // "" for a stage that keeps nothing; else KeptStateName (kept_gauge.h)
  uint64_t elements = 0;  // that are kept
  uint64_t bytes = 0;
  uint64_t hits = 0;  // elements that were taken from there
};

struct PackedStats {
  uint64_t sequences = 0;  // that left the stage
  uint64_t tokens = 0;     // in them
  uint64_t padding = 0;    // the same
  uint64_t documents = 0;  // that have come into it; 0 for a stage that packs none
  uint64_t pieces = 0;     // of them, in the sequences
};

struct StageStats {
  std::string name;
  uint64_t elements = 0;  // that left the stage
  uint64_t busy_ns = 0;   // processor time of all workers inside it
  uint64_t away_ns = 0;   // what its tasks have been away, in all (away_tasks.h)
  // Of sources: what their reads have brought, the time that they took, and how far they read
  // ahead.
  uint64_t read_bytes = 0;
  uint64_t read_ns = 0;
  int64_t read_ahead = 0;
  KeptStats kept;
  PackedStats packed;
  std::optional<AwayWorkers> away_workers;  // of who computes its rows, where these are its own
};

struct ExecutorStats {
  uint64_t steps = 0;  // the number of the next step to be published
  uint64_t rows = 0;
  uint64_t epoch = 0;
  uint64_t records = 0;  // read from files
  uint64_t bytes_read = 0;
  uint64_t skipped = 0;  // damaged places
  int workers = 0;
  std::vector<StageStats> stages;
  std::vector<SharedStats> shared;
  std::vector<HelperStats> helpers;
  uint64_t slot_wait_ns = 0;  // the time during which work was ready but no slot was free: the
                              // consumers are the bottleneck
  uint64_t running_ns = 0;    // since Start()
  std::string bottleneck;     // the stage's name, or "consumer"
  // Of the reads, of the writes, and of the rows that another process computes, which have taken
  // kSlowCallNs or more, the one that has taken longest.
  std::optional<CallUnderWay> oldest_read;
  std::optional<CallUnderWay> oldest_write;
  std::optional<CallUnderWay> oldest_work;
  size_t tasks_away = 0;  // whose work others do now
};

// Whether the consumers hold a stream back. `full`: the share of the time in which the ring was
// full; `busy`: that of the workers' time in which they were at work. So it is when the ring was
// full for half of the time, or for longer than the workers worked, or had nothing to do.
inline bool IsHeldByConsumers(double full, double busy) {
  const double blocked = std::min(full, 1 - busy);
  return full > 0.5 || blocked > std::max(busy, 1 - busy - blocked);
}

// How a worker gets on, for whoever looks for one that hangs.
struct WorkerPulse {
  int32_t thread = 0;  // as the kernel numbers it; 0 before the worker has begun
  uint64_t beats = 0;  // grows with everything that it does
  bool idle = false;   // sleeps until there is something to do
};

}  // namespace penstock
