// The steps of a stream that are in flight: which of them workers may fill, which are filled, and
// their way to the sink, in order.
//
// A step passes four counters, each written in one place: assembled (front) >= claimed (front) >=
// committed (here) >= recycled (front). Workers deal themselves blocks by two more, which count
// grains: grain t is one of step first_step + t / grains_per_step, and who deals himself some of a
// step's takes the first or the last ones that are left there.
//
// Threads:  what is marked "front" under the front's lock; everything else from any thread.
// Owns:     nothing; the steps are the front's, and the sink must outlive this.
// Limits:   kMaxSteps in flight.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "server/engine/compute/step.h"
#include "server/engine/run/executor_stats.h"
#include "server/engine/run/worker_gauges.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

// A block of a step's rows, for one worker to fill: some grains of it.
struct BlockTask {
  Step* step;
  uint32_t first_grain;
  uint32_t grains;
  uint64_t number;  // the step's, which is another one's as soon as the step is committed
};

class StepTable {
 public:
  // Every slot of a ring, and those assembled ahead of a slot.
  static constexpr uint64_t kMaxSteps = 128;
  static constexpr uint64_t kNever = std::numeric_limits<uint64_t>::max();

  // `at_limit` as ExecutorOptions has it; a look is taken at the gauges whenever steps are
  // committed.
  StepTable(uint64_t first_step, uint64_t grains_per_step, std::function<void()> at_limit,
            BatchSink& sink, WorkerGauges& gauges);

  uint64_t first_step() const { return first_step_; }
  uint64_t grains_per_step() const { return grains_per_step_; }

  // Front. Until a step is committed, and taken back, its number leads to it.
  void Put(uint64_t number, Step* step) {
    steps_[number % kMaxSteps].store(step, std::memory_order_relaxed);
  }
  Step* At(uint64_t number) const {
    return steps_[number % kMaxSteps].load(std::memory_order_relaxed);
  }
  // Front. Claims slots for the steps below `assembled`, and deals out their grains; false when no
  // slot is free, or nothing to claim.
  bool Claim(uint64_t assembled);
  uint64_t claimed() const { return claimed_.load(std::memory_order_relaxed); }
  // What is below has been published, and belongs to the front again.
  uint64_t committed() const {
    return committed_.load(std::memory_order_acquire);  // SYNC step-committed
  }
  // Front. There is no step of that number; `status` as BatchSink::Finish has it. Commit() is to
  // follow.
  void SetEnd(uint64_t step, absl::Status status) {
    end_status_ = std::move(status);
    end_step_.store(step, std::memory_order_release);  // SYNC stream-end
  }

  // A block that nobody has taken, of at most so many grains: those of one step.
  std::optional<BlockTask> Take(uint32_t grains_max, bool from_back);
  // The next step, if nobody has taken any of it, and `left` more are there that nobody has.
  std::optional<BlockTask> TakeStep(uint64_t left);
  // Grains that nobody has taken.
  uint64_t grains_left() const {
    return grains_limit_.load(std::memory_order_relaxed) - grains_.load(std::memory_order_relaxed);
  }
  bool HasBlocks() const {
    return grains_.load(std::memory_order_relaxed) < grains_limit_.load(std::memory_order_relaxed);
  }

  // Publishes the steps that are done, up to the end or the limit, and tells the sink and at_limit
  // of those. Leaves that to another thread that is at it: publishing wakes consumers, which may
  // take a worker's processor in the middle.
  void Commit();
  // Ends the stream behind what is published; false when it had ended already, or come to its
  // limit.
  bool Fail(const absl::Status& status);
  // Nothing is published any more, and nobody called back.
  void Close();

  // As Executor::SetLimit() has it. A limit that was reached, and told, may be lifted: it goes on
  // to the next one.
  void SetLimit(uint64_t step) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (step != limit_.load(std::memory_order_relaxed)) limit_told_ = false;
    limit_.store(step, std::memory_order_release);  // SYNC stream-limit
  }
  uint64_t limit() const {
    return limit_.load(std::memory_order_acquire);  // SYNC stream-limit
  }

  bool KnowsEnd() const { return end_step_.load(std::memory_order_acquire) != kNever; }
  // Nothing further is published.
  bool finished() const { return finished_.load(std::memory_order_relaxed); }

  // The number of the next step to be published.
  uint64_t published() const { return published_.load(std::memory_order_relaxed); }
  // Fills in what was published.
  void Fill(ExecutorStats* stats) const;

 private:
  void CommitWhatIsDone();

  // Constant after construction.
  const uint64_t first_step_;
  const uint64_t grains_per_step_;
  const std::function<void()> at_limit_;

  // Own synchronisation.
  BatchSink& sink_;
  WorkerGauges& gauges_;
  std::array<std::atomic<Step*>, kMaxSteps> steps_{};
  std::atomic<uint64_t> grains_{0};        // dealt to workers so far
  std::atomic<uint64_t> grains_limit_{0};  // SYNC tasks-ready
  std::atomic<uint64_t> claimed_;
  std::atomic<uint64_t> committed_;         // SYNC step-committed
  std::atomic<uint64_t> end_step_{kNever};  // SYNC stream-end: the first step that does not exist
  std::atomic<uint64_t> limit_{kNever};     // SYNC stream-limit: the first that another one makes
  std::atomic<uint32_t> commits_asked_{
      0};  // SYNC commit-asked: calls of Commit() that are to be answered
  std::atomic<bool> finished_{false};  // written under mutex_
  std::atomic<uint64_t> published_;    // for statistics alone, as those below
  std::atomic<uint64_t> rows_{0};
  std::atomic<uint64_t> epoch_{0};

  absl::Status end_status_;  // written before end_step_

  std::mutex mutex_;
  bool limit_told_ = false;  // under mutex_
};

}  // namespace penstock
