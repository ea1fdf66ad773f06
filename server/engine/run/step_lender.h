// Others who fill whole steps: daemons of other hosts, for one. A worker lends them a step that
// nobody has begun; they write into its slot what the workers would have written, or give it back
// untold, and the workers make it.
//
//     StepLender     those of one executor
//     StepLenders    who makes them
//
// Threads:  safe from any thread.
// Cost:     HasRoom() is one reading of an atomic.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/completion.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/plan.h"
#include "server/engine/run/helper_stats.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

class StepLender {
 public:
  class Place {
   public:
    virtual ~Place() = default;
  };

  virtual ~StepLender() = default;

  // Whether somebody would take a step now.
  virtual bool HasRoom() const = 0;
  // A place for a step; null where there is none any more. Lend() or GiveUp() is to follow.
  virtual std::shared_ptr<Place> Reserve() = 0;
  virtual void GiveUp(Place& place) = 0;
  // Has the step made: fills the slot's tensors and `info->extents`. Until `done` ends, `info` and
  // `slot` stay. Ended with an error: what lies in the slot counts for nothing.
  virtual void Lend(Place& place, StepInfo* info, const ClaimedSlot& slot, Completion done) = 0;
  // The workers have nothing else to do, and wait for this step: it comes back now, unless its
  // bytes are just coming. Safe for a step that nobody has any more.
  virtual void TakeBack(uint64_t step) = 0;
  // All steps in front of `step` have been dealt out. `cursor` is that of the step; `own_ns`: what
  // a step takes the workers, together; 0: that is not known.
  virtual void Passed(uint64_t step, const std::string& cursor, uint64_t own_ns) = 0;

  virtual std::vector<HelperStats> Helpers() const = 0;
};

// The stream whose steps are lent: as ExecutorOptions has it.
struct LentStream {
  v1::Fingerprint fingerprint;
  ResumePoint start;
  uint64_t skip_steps = 0;
  std::optional<uint64_t> start_pass;
  std::function<void(const std::string&)> notice;
};

class StepLenders {
 public:
  virtual ~StepLenders() = default;
  // Null where nobody can make steps of that plan.
  virtual std::unique_ptr<StepLender> Make(std::shared_ptr<const Plan> plan,
                                           const LentStream& stream) = 0;
};

}  // namespace penstock
