// The sequential front of a running pipeline: pulls references through the order ops and assigns
// them to the rows of steps.
//
// Threads:  one at a time (the executor's front lock); the ReadQueue it fills is emptied by any
//           worker.
// Owns:     the order ops with their state.
// Cost:     some tens of ns a record, in blocks; it never touches a record's bytes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "server/engine/compute/stage_clock.h"
#include "server/engine/compute/step.h"
#include "server/engine/order/order_op.h"
#include "server/engine/plan/plan_impl.h"
#include "server/engine/section/sections_ahead.h"

namespace penstock {

class Front {
 public:
  // `gauges`, `packs`: where ops tell what they keep and pack, one for each stage; `waiting`: who
  // waits for the front; `errands`. All as FrontContext has them.
  Front(const PlanImpl& plan, FileTable& files, RecordStore& store, ReadQueue& reads,
        SectionQueue& sections, DamageLog& damage, const std::atomic<bool>& cancelled,
        KeptGauge* gauges = nullptr, const std::atomic<int>* waiting = nullptr,
        Errands* errands = nullptr, PackGauge* packs = nullptr);

  // Goes to a position of another front of the same plan. REQUIRES: nothing was assembled yet.
  // InvalidArgument when it is no position of this plan.
  absl::Status Restore(Position position);

  // Whose clock is charged; set by the worker that holds the front's lock.
  void set_clock(StageClock* clock) { clock_ = clock; }

  // The pass of the outermost `repeat`, which is to be the last order op: of the step that was
  // assembled last, or of one that has been begun. 0 where the last op is another one.
  uint64_t pass() const { return last_->pass(); }
  // Begins with that pass. REQUIRES: nothing was assembled yet.
  void BeginPass(uint64_t pass) { last_->BeginPass(pass); }

  // How many do what sections ask for; from any thread.
  void set_workers(int workers) { ahead_.set_workers(workers); }

  // Leaves out up to `count` steps and adds their number to `*skipped`.
  Pulled Skip(uint64_t count, uint64_t* skipped);

  // Goes on filling `step->records`, which must be empty at a step's first call. kSome: the step is
  // complete, with the position behind it.
  Pulled Assemble(Step* step);

  // Why Assemble() returned kFailed.
  absl::Status status() const;

  // The steps of the stream, or OrderOp::kEndless, where they are known without running it.
  std::optional<uint64_t> Count() { return last_->Count(); }

  // For further ops over what this one reads from.
  FrontContext& context() { return context_; }

  // The step's records are no longer needed.
  void Release(Step* step);
  // Of a step that is complete: those of all rows but these.
  void KeepRows(RowSpan rows, Step* step);

  // All ops give back the records that wait in them. REQUIRES: no read is under way, no call
  // follows.
  void GiveBack() { last_->Restart(0); }

 private:
  // What the ops find no memory for ends the stream, as an error of theirs does; none of them is
  // asked again.
  template <typename Call>
  Pulled Within(const Call& call);

  const uint32_t width_;
  const std::vector<std::string>& stage_names_;  // the plan's
  absl::Status no_memory_;
  StageClock* clock_ = nullptr;
  SectionsAhead ahead_;
  FrontContext context_;
  std::unique_ptr<OrderOp> last_;
};

}  // namespace penstock
