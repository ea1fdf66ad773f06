// Runs a plan: workers that read, order and transform, and fill the batches of a sink.
//
// Threads:  Start() and Stop() from one owner; Snapshot() from any thread.
// Owns:     its worker threads and everything in flight; Stop() (or the destructor) cancels and
// joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/batch_sink.h"
#include "server/engine/cursor.h"
#include "server/engine/damage_log.h"
#include "server/engine/plan.h"

namespace penstock {

struct ExecutorOptions {
  // What its cursors belong to (FingerprintOf), and where it begins.
  v1::Fingerprint fingerprint;
  ResumePoint start;
  int workers = 0;       // 0: one for each processor this process may use
  int worker_nice = 10;  // so that a trainer on the same processors goes first
  // What is no error and no damage, but should be known: one sentence. From any worker; may be empty.
  std::function<void(const std::string&)> notice;
};

struct StageStats {
  std::string name;
  uint64_t elements = 0;  // that left the stage
  uint64_t busy_ns = 0;   // processor time of all workers inside it
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
  uint64_t slot_wait_ns = 0;  // the time during which work was ready but no slot was free: the
                              // consumers are the bottleneck
  uint64_t running_ns = 0;    // since Start()
  std::string bottleneck;     // the stage's name, or "consumer"
};

// How a worker gets on, for whoever looks for one that hangs.
struct WorkerPulse {
  int32_t thread = 0;  // as the kernel numbers it; 0 before the worker has begun
  uint64_t beats = 0;  // grows with everything that it does
  bool idle = false;   // sleeps until there is something to do
};

class Executor {
 public:
  // `sink` must outlive the executor. InvalidArgument when options.start is no position of the
  // plan.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(std::shared_ptr<const Plan> plan,
                                                          BatchSink& sink,
                                                          const ExecutorOptions& options);
  virtual ~Executor() = default;

  virtual void Start() = 0;
  virtual void Stop() = 0;
  virtual ExecutorStats Snapshot() const = 0;
  // Takes no lock that a worker may hold.
  virtual std::vector<WorkerPulse> Pulses() const = 0;

  // What damage policies have skipped; the first DamageLog::kMaxListed places.
  virtual std::vector<SkippedPlace> Skipped() const = 0;
};

}  // namespace penstock
