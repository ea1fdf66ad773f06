// How many workers a pipeline needs so that its consumers wait for nothing: arithmetic on what was
// measured, no clock and no threads.
//
// It goes up at once, by what the waiting says is missing, and down slowly, one step after some
// quiet looks; after a step down that made somebody wait it stays longer where it is each time.
//
// Threads: one at a time.
// Cost:    some tens of nanoseconds a look.
#pragma once

#include <cstdint>
#include <string>

#include "penstock/v1/control.pb.h"
#include "server/service/tune/patience.h"

namespace penstock {

class Autotuner {
 public:
  // Chooses from 1 to `most` workers. `processors`: what affinity and cgroup allow, for the reason.
  Autotuner(int most, double processors) : most_(most), processors_(processors) {}

  // A look at the last seconds, about once a second; `workers`: those that there are. Returns how
  // many there are to be. REQUIRES: stats.analysis() is filled in.
  int Look(const v1::PipelineStats& stats, int workers);

  const std::string& reason() const { return reason_; }
  uint64_t changes() const { return changes_; }
  int most() const { return most_; }
  double processors() const { return processors_; }

 private:
  int Choose(int workers, int wanted, std::string reason);

  int most_;
  double processors_;
  std::string reason_ = "nothing was measured yet";
  uint64_t changes_ = 0;
  Pause settling_;             // until what was changed last can be seen
  int quiet_ = 0;              // looks in a row in which fewer workers would have done
  Patience patience_{5, 320};  // quiet looks before a step down
  bool stepped_down_ = false;  // the last change was one
};

}  // namespace penstock
