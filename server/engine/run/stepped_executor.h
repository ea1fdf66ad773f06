// An executor whose workers are the caller's: a simulator decides which of them goes on next, and
// by how much.
//
// What a worker's thread does in one go is cut where another worker may come between: what it has
// taken (a read, a block of rows) is held until it is stepped again, and going to sleep is its own
// part. So one seed gives every order in which reads and blocks may be done, and a wake-up that is
// missing is seen: all workers sleep, and nothing is under way.
//
// Threads:  one thread calls everything.
// Limits:   the front runs in one part; that two threads meet in it is left to ThreadSanitizer.
#pragma once

#include <cstdint>
#include <memory>

#include "server/engine/run/executor.h"

namespace penstock {

// What a worker did, or why it did nothing.
enum class Stepped {
  kWorked,
  kHolds,         // it has something in hand and goes on with it at its next step
  kSleeps,        // until somebody wakes it; at the executor's end, for good
  kWaitsForSlot,  // its next step is that the wait is over, because of a slot or of the time
};

class SteppedExecutor : public Executor {
 public:
  // As Executor::Create().
  static absl::StatusOr<std::unique_ptr<SteppedExecutor>> Create(std::shared_ptr<const Plan> plan,
                                                                 BatchSink& sink,
                                                                 const ExecutorOptions& options);

  // Instead of Start(), once.
  virtual void BeginSteps() = 0;

  // One part of a worker's work. After Stop() a worker finishes what it holds and takes nothing.
  virtual Stepped StepWorker(int worker) = 0;

  // Gives back every record that is somewhere between the files and the sink, and returns how many
  // cells are still taken: 0.
  // REQUIRES: no worker holds anything; nothing but the destructor follows. Reads that nobody has
  // taken yet are done.
  virtual uint64_t GiveBack() = 0;
};

}  // namespace penstock
