// Where the executor of a helper's stream puts its steps: those that were asked for into memory,
// from which they are sent; all others nowhere, as nothing of them is computed.
//
// Threads:  as BatchSink; everything else by the thread of the connection, whose bell is rung when
//           there is something for it.
// Owns:     the memory of the steps that were asked for, charged to the stream's account as it is
//           written.
// Limits:   as many steps at a time as the asker has said; what the account may take.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <vector>

#include "base/memory_account.h"
#include "server/engine/plan/plan.h"
#include "server/engine/tensor/batch_sink.h"
#include "server/engine/tensor/unwanted_slot.h"

namespace penstock {

class StepSink final : public BatchSink {
 public:
  // `account` may be null.
  StepSink(const Plan& plan, uint64_t first_step, int most_steps,
           std::shared_ptr<MemoryAccount> account, std::function<void()> ring);
  ~StepSink() override;

  // False where the asker asks for more at a time than it has said. One that cannot be made any
  // more, as the order has gone past it or the stream has ended in front of it, is unmade in its
  // turn.
  bool Want(uint64_t step);
  void Passed(uint64_t step);

  struct Made {
    uint64_t step = 0;
    bool is_made = false;  // else it fails, or there is none
    StepInfo info;
    ClaimedSlot slot;
  };
  // The next of those that were asked for, in the order of the questions; nullopt: it is not made
  // yet.
  std::optional<Made> TakeMade();
  void GiveBack(const Made& made);
  // Why nothing more is made; nullopt: it goes on, or has come to its end.
  std::optional<absl::Status> Failure();

  // BatchSink.
  bool TryClaim(ClaimedSlot* slot) override;
  void MakeRoom(int slot, uint64_t bytes) override;
  void Publish(const ClaimedSlot& slot, const StepInfo& info) override;
  void Finish(const absl::Status& status) override;
  void WaitForSlot(absl::Duration timeout) override;
  void Interrupt() override;

 private:
  struct Memory;
  struct Asked {
    uint64_t step = 0;
    bool can_be_made = true;
  };
  bool CanClaim() const;  // REQUIRES: mutex_

  const std::vector<BatchTensor> tensors_;
  const uint64_t variable_bytes_;
  const int most_steps_;
  const std::shared_ptr<MemoryAccount> account_;
  const std::function<void()> ring_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Memory>> memory_;  // under mutex_, as those below
  std::vector<int> idle_;                        // numbers of those
  uint64_t next_;                                // the step that is claimed next
  uint64_t passed_;            // those below that nobody has asked for are unwanted
  std::set<uint64_t> wanted_;  // asked for and not claimed
  std::deque<Asked> asked_;    // asked for and not taken
  std::deque<Made> made_;
  absl::Status end_;
  bool finished_ = false;
  bool interrupted_ = false;
};

}  // namespace penstock
