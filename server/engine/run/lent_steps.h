// Steps that a worker has lent to others (step_lender.h), and those that came back unmade: workers make these before any other.
//
//     LendOne() ──► away ──► Ended() ──► Pop() by a worker: done, or TakeReturned() by all of them
//
// Threads:  safe from any thread; a LentStep is its lender's until it has ended.
// Owns:     the marks of lent steps, not the steps.
// Limits:   the steps that have slots.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "server/engine/run/step_lender.h"
#include "server/engine/run/step_table.h"
#include "server/engine/tasks/away_tasks.h"
#include "server/engine/tasks/work_queue.h"

namespace penstock {

class LentStep;
using LentStepQueue = WorkQueue<LentStep>;

class LentStep final : public AwayTask {
 public:
  explicit LentStep(LentStepQueue& back) : back_(back) {}
  void Ended(absl::Status ended_status) override {
    status = std::move(ended_status);
    back_.Push(this);
  }

  BlockTask task;  // all of the step
  absl::Status status;

 private:
  LentStepQueue& back_;
};

class LentSteps {
 public:
  // `lender` may be null: nothing is lent then.
  LentSteps(StepLender* lender, StepTable& steps, AwayTasks& away)
      : lender_(lender), steps_(steps), away_(away) {}

  bool is_used() const { return lender_ != nullptr; }

  // Whether somebody has room for a step, and there are not two that nobody has begun: the front is wanted then.
  bool WantsSteps() const {
    return lender_ != nullptr && steps_.grains_left() < 2 * steps_.grains_per_step() &&
           lender_->HasRoom() && !steps_.finished();
  }

  // Lends the next step, if somebody has room and it is whole; one more is left for the workers.
  bool LendOne();
  // A step has been dealt out; its cursor is that of the next one.
  void Passed(const StepInfo& info) { lender_->Passed(info.step + 1, info.cursor); }

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
  std::mutex mutex_;
  std::vector<std::unique_ptr<LentStep>> all_;  // under mutex_, as those below
  std::vector<LentStep*> idle_;
  std::deque<Returned> returned_;
  std::atomic<uint64_t> returned_grains_{0};  // written under mutex_
};

}  // namespace penstock
