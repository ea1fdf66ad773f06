// A ring without memory that is shared, and its consumers: they take each step, hold some, give
// them back in any order, die and come back.
//
// Everything that the engine hands over is compared at once with what is expected, and again when a
// consumer gives it back.
//
// Threads:  one thread.
// Owns:     the slots.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "server/engine/plan/plan.h"
#include "server/engine/tensor/batch_sink.h"
#include "tests/sim/dice.h"
#include "tests/support/pipeline.h"

namespace penstock::test {

class SimulatedSink final : public BatchSink {
 public:
  // Steps from `first_step` on must be those of `expected`, which begins with step 0; null:
  // anything is taken, for a reference. No step from `end_step` on gets a slot.
  SimulatedSink(const Plan& plan, int slots, int consumers, uint64_t first_step, uint64_t end_step,
                const RunResult* expected);

  bool TryClaim(ClaimedSlot* claimed) override;
  void Publish(const ClaimedSlot& slot, const StepInfo& info) override;
  void Finish(const absl::Status& status) override;
  // Nobody waits in a simulation.
  void WaitForSlot(absl::Duration) override { Complain("WaitForSlot() was called"); }
  void Interrupt() override {}

  // One consumer does one thing; false when none has anything to do.
  bool Act(Dice& dice);
  // What consumers hold is given back, and all that is published is taken.
  bool Drain();

  bool has_free_slot() const { return !free_.empty() && next_claim_ < end_step_; }
  uint64_t next_step() const { return next_step_; }
  bool finished() const { return finished_; }
  const absl::Status& status() const { return status_; }
  // What was published, where nothing was expected.
  std::vector<Batch> TakeBatches() { return std::move(batches_); }

  // The first thing that was wrong; "" while nothing is.
  const std::string& complaint() const { return complaint_; }

 private:
  struct Slot {
    std::vector<std::string> tensors;  // of fixed size
    std::unique_ptr<uint8_t[]> variable;
    StepInfo info;
    int holders = 0;  // consumers that have not given it back
  };
  struct Consumer {
    bool alive = true;
    std::deque<int> ahead;  // published and not yet taken, oldest first
    std::vector<int> held;
    uint64_t next_step = 0;
  };

  void Complain(const std::string& what);
  void CheckBytes(int slot, const char* when);
  Batch Copy(int slot) const;
  void GiveBack(int slot);
  void Die(Consumer& consumer);
  void ComeBack(Consumer& consumer);

  const std::vector<BatchTensor> tensors_;
  const uint64_t end_step_;
  const RunResult* const expected_;
  bool variable_ = false;
  std::vector<Slot> slots_;
  std::vector<Consumer> consumers_;
  std::deque<int> free_;
  std::deque<int> published_;  // slots in the order of their steps
  uint64_t next_claim_;
  uint64_t next_step_;
  bool finished_ = false;
  absl::Status status_;
  std::vector<Batch> batches_;
  std::string complaint_;
};

}  // namespace penstock::test
