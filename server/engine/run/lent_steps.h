// Steps that a worker has lent to others (step_lender.h), and those that came back unmade: workers
// make these before any other.
//
//     LendOne() ──► away ──► Ended() ──► Pop() by a worker: done, or TakeReturned() by all of them
//
// Who is slower than the workers must not hold them up: a step at which everything waits is taken
// back.
//
// Threads:  safe from any thread; a LentStep is its lender's until it has ended.
// Owns:     the marks of lent steps, not the steps.
// Limits:   the steps that have slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "server/engine/run/back_queue.h"
#include "server/engine/run/step_lender.h"
#include "server/engine/run/step_table.h"
#include "server/engine/tasks/away_tasks.h"

namespace penstock {

class LentStep;
using LentStepQueue = BackQueue<LentStep>;

class LentStep final : public AwayTask {
 public:
  explicit LentStep(LentStepQueue& back) : back_(back) {}
  void Ended(absl::Status ended_status) override {
    status = std::move(ended_status);
    back_.Push(this);
  }

  BlockTask task;  // all of the step
  absl::Status status;
  bool is_away = false;  // under the mutex of LentSteps

 private:
  LentStepQueue& back_;
};

class LentSteps {
 public:
  // `lender` may be null: nothing is lent then.
  LentSteps(StepLender* lender, StepTable& steps, AwayTasks& away)
      : lender_(lender), steps_(steps), away_(away) {}

  // As BackQueue has it.
  void AlsoWake(std::function<void()> wake) { back_.AlsoWake(std::move(wake)); }

  bool is_used() const { return lender_ != nullptr; }

  // Whether somebody has room for a step, and there are not two that nobody has begun: the front is
  // wanted then.
  bool WantsSteps() const {
    return lender_ != nullptr && steps_.grains_left() < 2 * steps_.grains_per_step() &&
           lender_->HasRoom() && !steps_.finished();
  }

  // Lends the next step, if somebody has room and it is whole; one more is left for the workers.
  // One worker at a time, so that steps are lent in their order.
  bool LendOne();
  // By a worker that has nothing to do. A lent step is taken back where no worker is at work and
  // either no slot is free, and a third of what is in flight is done and waits for it, or nothing
  // follows any more. False where that is not so.
  bool TakeBackHeld(bool ring_is_full);
  // A step has been dealt out; its cursor is that of the next one.
  void Passed(const StepInfo& info);

  // One that is back: made (then true), or it goes where TakeReturned() finds it. Null: none is.
  Step* TakeMade(bool* is_back);
  // A block of a step that came back unmade.
  std::optional<BlockTask> TakeReturned(uint32_t grains_max, bool from_back);

  bool empty() const {
    return back_.empty() && returned_grains_.load(std::memory_order_relaxed) == 0;
  }

 private:
  struct Returned {
    Step* step;
    uint64_t number;
    uint64_t grains_left;
  };

  StepLender* const lender_;
  StepTable& steps_;
  AwayTasks& away_;
  LentStepQueue back_;
  std::mutex lending_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<LentStep>> all_;  // under mutex_, as those below
  std::vector<LentStep*> idle_;
  std::deque<Returned> returned_;
  uint64_t most_in_flight_ = 0;  // lately, when workers had nothing to do
  uint64_t looks_ = 0;
  std::atomic<uint64_t> returned_grains_{0};  // written under mutex_
  // Between two steps that the workers have done, lately; 0: not known.
  std::atomic<uint64_t> own_ns_{0};
  std::atomic<uint64_t> done_ns_{0};
};

}  // namespace penstock
