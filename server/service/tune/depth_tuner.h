// How many slots a ring needs so that consumers wait for nothing, where batches do not come evenly:
// arithmetic on what was measured, no clock and no threads.
//
// More slots help where workers find the ring full at some times and consumers find it empty at
// others: then there is time to make batches, but no place to keep them. It only goes up: what
// slots have taken is kept until the ring ends. Which of them are used, the ring decides
// (ring/slot_trial.h).
//
// Threads:  one at a time.
// Cost:     some tens of nanoseconds a look.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/v1/control.pb.h"
#include "server/service/tune/patience.h"

namespace penstock {

class DepthTuner {
 public:
  // A look at the last seconds, about once a second; `slots`: those that there are, of at most
  // `most`. Returns how many there are to be.
  // REQUIRES: stats.analysis() is filled in.
  uint32_t Look(const v1::PipelineStats& stats, uint32_t slots, uint32_t most);

  const std::string& reason() const { return reason_; }
  uint64_t changes() const { return changes_; }

 private:
  std::string reason_ = "nothing was measured yet";
  uint64_t changes_ = 0;
  // Until the beginning, or what was changed last, is out of sight.
  Pause settling_{kSettlingLooks};
  bool tried_ = false;   // whether that helped is not known yet
  double waited_ = 0;    // before it
  Rest rest_{30, 1920};  // until it is tried again, as it has not helped
};

}  // namespace penstock
