// The front of a running executor at work: takes steps back that are done with, has the Front fill
// the next ones, and claims slots for them. It ends the stream where the records, the limit or the
// pass limit say so.
//
// Threads:  Run() by the worker that has TryLock(); what waits for the front's lock says so;
//           everything else, Claim() too, from any thread.
// Owns:     the Front and all steps.
// Limits:   StepTable::kMaxSteps in flight, kStepsAhead of them assembled before there is a slot
//           for them, so that a freed slot is filled at once. Of steps whose bytes come from other
//           machines, and are asked for as they are assembled, as many as have kFarBytesAhead,
//           kFarStepsAhead at most.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/compute/step.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/read/file_table.h"
#include "server/engine/read/read_queue.h"
#include "server/engine/run/front.h"
#include "server/engine/run/step_table.h"
#include "server/engine/section/section.h"
#include "server/engine/tasks/errands.h"
#include "server/engine/tasks/event.h"

namespace penstock {

struct ExecutorOptions;

// What a run of the front led to.
enum class FrontResult {
  kForward,   // something was assembled or claimed
  kStuck,     // a read is under way, enough is assembled, or the stream is over
  kRingFull,  // an assembled step has no slot
};

class StepAssembler {
 public:
  // What the front works with: the executor's, and outlives this.
  struct Means {
    const PlanImpl& plan;
    FileTable& files;
    RecordStore& store;
    ReadQueue& reads;
    SectionQueue& sections;
    Errands& errands;
    DamageLog& damage;
    KeptGauge* gauges;  // one a stage
    PackGauge* packs;   // the same
    const std::atomic<bool>& stop;
    StepTable& steps;
    Event& work;  // what workers sleep at
  };

  StepAssembler(const Means& means, const ExecutorOptions& options);

  // As Front::Restore().
  absl::Status Restore(const Position& position) { return front_.Restore(position); }

  // As Front::set_workers().
  void set_workers(int workers) { front_.set_workers(workers); }

  // The front is wanted when less than a step's grains are left: the other workers have those to go
  // on with meanwhile. Who did not run it last (is not `at_home`) takes it over when those, too,
  // are nearly done.
  bool IsWanted(bool at_home) const {
    const uint64_t grains = steps_.grains_per_step();
    return steps_.grains_left() < (at_home ? grains : grains / 4 + 1) && !steps_.finished();
  }
  std::unique_lock<std::mutex> TryLock() { return {mutex_, std::try_to_lock}; }
  // Takes back what is done with, assembles what may be assembled, claims slots. REQUIRES:
  // TryLock() has given the lock.
  FrontResult Run(StageClock& clock);

  // Whether an assembled step has no slot yet.
  bool HasUnclaimed() const {
    return steps_.claimed() < assembled_.load(std::memory_order_acquire) && !steps_.finished();
  }
  // Claims slots for what is assembled, whoever has the front's lock: the front may be at work for
  // long. False when none was free.
  bool Claim();

  // As Executor has them. They wait for the front's lock, but for where the stream is over, as its
  // front may hang in a read.
  uint64_t Hold();
  // False where the stream is over: nobody need be woken.
  bool Release();
  void SetPassLimit(uint64_t pass);
  uint64_t pass() const;
  // Waits for the front's lock.
  Position AtLimit() const;

  // The records of all steps go back to their store, and then, when no read is asked for any more,
  // those of the ops. REQUIRES: no worker runs; nothing but the destructor follows.
  void GiveBackSteps();
  void GiveBackOps() { front_.GiveBack(); }

 private:
  std::unique_lock<std::mutex> Lock() const;
  void BeginStep();
  bool Assemble();
  // Of the step that was filled, what other hosts compute is given back.
  void TakeOwnRows();
  // Asks for the bytes of the step that was filled, where they come from other machines.
  void Announce();
  // Hands over the step that was filled, with the cursor behind it.
  void FinishStep();
  // The pass limit is where the step that would be assembled next begins.
  void EndPass();
  bool HasRequests() const { return !reads_.empty() || !sections_.empty() || !errands_.empty(); }

  // Constant after construction.
  const PlanImpl& plan_;
  const uint64_t skip_steps_;
  const CursorMaker cursors_;

  // Own synchronisation.
  ReadQueue& reads_;
  SectionQueue& sections_;
  Errands& errands_;
  const std::atomic<bool>& stop_;
  StepTable& steps_;
  Event& work_;
  FileTable& files_;
  const bool has_far_files_;

  std::atomic<uint64_t> assembled_;  // written under mutex_, behind the step's table entry
  std::mutex claim_mutex_;           // behind mutex_: one claims at a time

  mutable std::atomic<int> waiting_{0};  // for mutex_, in Lock()

  // Under mutex_.
  mutable std::mutex mutex_;
  Front front_;
  std::vector<std::unique_ptr<Step>> all_steps_;
  std::vector<Step*> idle_steps_;
  Step* partial_ = nullptr;  // being assembled
  uint64_t recycled_;
  int holds_ = 0;
  uint64_t pass_limit_ = StepTable::kNever;
  uint64_t skipped_ = 0;    // of skip_steps_
  Position last_position_;  // behind the step that was assembled last
  uint64_t steps_ahead_;
  // The files of steps whose bytes were asked for, until those are taken back.
  struct Announced {
    uint64_t step = 0;
    std::vector<std::shared_ptr<RandomAccessFile>> open;
  };
  std::deque<Announced> announced_;
};

}  // namespace penstock
