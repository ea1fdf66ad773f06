// Runs a plan: workers that read, order and transform, and fill the batches of a sink.
//
// Threads:  Start() and Stop() from one owner; everything else from any thread.
// Owns:     its worker threads and everything in flight; Stop() (or the destructor) cancels and
//           joins them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "server/engine/plan/cursor.h"
#include "server/engine/plan/plan.h"
#include "server/engine/read/damage_log.h"
#include "server/engine/run/executor_stats.h"
#include "server/engine/run/step_lender.h"
#include "server/engine/run/work_trace.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

class MemoryAccount;
class SharedMaps;
class SharedPrefixes;

struct ExecutorOptions {
  // What its cursors belong to (FingerprintOf), and where it begins.
  v1::Fingerprint fingerprint;
  ResumePoint start;
  int workers = 0;       // 0: one for each processor this process may use, or of `processors`
  int worker_nice = 10;  // so that a trainer on the same processors goes first
  // On which workers run; empty: on any. `not_bound` is told once, by a worker, when the system
  // refuses; it may be null, and must not call back.
  std::vector<int> processors = {};
  std::function<void(const absl::Status&)> not_bound = nullptr;
  // What is no error and no damage, but should be known: one sentence. From any worker; may be
  // empty.
  std::function<void(const std::string&)> notice;
  // Steps that are left out in front of the first one.
  uint64_t skip_steps = 0;
  // Called once, by a worker or out of SetLimit(), when all steps below the limit are published. It
  // must not call back.
  std::function<void()> at_limit = nullptr;
  // Begins with that pass of the outermost `repeat`, the plan's last order op, whatever
  // start.position says.
  std::optional<uint64_t> start_pass;
  // How far sources read ahead, in bytes, by the names of their stages; "" for those that are not
  // named.
  std::map<std::string, int64_t> read_ahead;
  // Where it finds work that other pipelines do too, and the name under which it is known there;
  // null: it does all of its own.
  std::shared_ptr<SharedPrefixes> prefixes = nullptr;
  std::string pipeline = {};
  // What maps of files are taken from; null: none are kept.
  std::shared_ptr<SharedMaps> maps = nullptr;
  // What all that it computes and keeps is charged to; null: there is no limit.
  std::shared_ptr<MemoryAccount> memory = nullptr;
  // A read that takes longer ends the stream with an error; 0: it is waited for.
  uint64_t read_deadline_ns = 0;
  // Who makes some of its steps; null: it makes all of them.
  std::shared_ptr<StepLenders> helpers = nullptr;
};

class Executor {
 public:
  // `sink` must outlive the executor. InvalidArgument when options.start is no position of the
  // plan.
  static absl::StatusOr<std::unique_ptr<Executor>> Create(std::shared_ptr<const Plan> plan,
                                                          BatchSink& sink,
                                                          const ExecutorOptions& options);
  virtual ~Executor() = default;

  // ResourceExhausted when the system has no threads for all of its workers: then none of them
  // runs, and only the destructor may follow.
  virtual absl::Status Start() = 0;
  virtual void Stop() = 0;
  // Stop(), unless workers hang in a read or a write, or compute on: false, once all that are left
  // do. No step is published any more and nobody is called back, but the executor and what it was
  // made of, its sink too, must live until HasEnded().
  virtual bool TryStop() = 0;
  // Has Hold(), and whatever else waits for the front, wait no longer for one that hangs in a read:
  // TryStop() is about to be called.
  virtual void Cancel() = 0;
  // Whether no worker runs: Stop() returns at once.
  virtual bool HasEnded() const = 0;
  // Ends the stream where a read has taken longer than the deadline: DeadlineExceeded, with its
  // address, behind the steps that are published; not where it has come to its limit, as what it
  // reads then nobody wants. To be called a few times in that time; waits for nothing.
  virtual void EndAtHungRead() = 0;

  // No further step is begun until Release(), which is called as often. Returns the number of the
  // first step that nothing has been done for.
  virtual uint64_t Hold() = 0;
  virtual void Release() = 0;
  // The first step that it does not make; UINT64_MAX: there is none. REQUIRES: at least what Hold()
  // has returned; held.
  virtual void SetLimit(uint64_t step) = 0;
  // The limit is where this pass of the outermost `repeat` would begin, which must be the plan's
  // last order op. REQUIRES: more than pass(), or UINT64_MAX for none; held.
  virtual void SetPassLimit(uint64_t pass) = 0;
  // The pass of that `repeat` that has been begun. REQUIRES: held.
  virtual uint64_t pass() const = 0;
  // The step of the limit; UINT64_MAX while none is known.
  virtual uint64_t limit() const = 0;
  // Whether it knows the last step of the stream, so that nothing can go on behind it.
  virtual bool KnowsEnd() const = 0;
  // The position behind the step in front of the limit. REQUIRES: at_limit was called.
  virtual Position AtLimit() const = 0;

  // Returns at once: those that are too many end after the row that they are in the middle of.
  // InvalidArgument beyond max_workers(); ResourceExhausted, with as many as before, when the
  // system has no threads for more.
  virtual absl::Status SetWorkers(int workers) = 0;
  virtual int max_workers() const = 0;

  // How far sources read ahead, at once: as ExecutorOptions::read_ahead.
  virtual void SetReadAhead(const std::map<std::string, int64_t>& bytes) = 0;

  // Records what the workers do; false when that is being done already.
  virtual bool StartTrace() = 0;
  virtual WorkSpans StopTrace() = 0;

  virtual ExecutorStats Snapshot() const = 0;
  // Takes no lock that a worker may hold.
  virtual std::vector<WorkerPulse> Pulses() const = 0;

  // What damage policies have skipped; the first DamageLog::kMaxListed places.
  virtual std::vector<SkippedPlace> Skipped() const = 0;
};

}  // namespace penstock
