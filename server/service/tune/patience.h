// What the tuners have in common: which wait counts, and how many looks they let pass.
//
// Threads:  one at a time.
#pragma once

#include <algorithm>

#include "penstock/v1/control.pb.h"

namespace penstock {

// A trainer that waits for less of its time than this has what it wants.
inline constexpr double kMayWait = 0.02;

// After a change so many looks pass until it can be seen: an analysis looks back on as many
// seconds.
inline constexpr int kSettlingLooks = 5;

// The share of its time for which the consumer that waits most waits. Nobody waits where nobody
// reads.
inline double WaitThatCounts(const v1::PipelineStats& stats) {
  return stats.consumers().empty() ? 0 : stats.analysis().trainer_wait();
}

// A number of looks that doubles each time that it was too small, up to `most`.
class Patience {
 public:
  Patience(int looks, int most) : looks_(looks), most_(most) {}

  int looks() const { return looks_; }
  void Double() { looks_ = std::min(2 * looks_, most_); }

 private:
  int looks_;
  int most_;
};

// Looks at which nothing is changed.
class Pause {
 public:
  explicit Pause(int looks = 0) : left_(looks) {}

  void Begin(int looks) { left_ = looks; }
  // Whether this look is one of them.
  bool Passes() {
    if (left_ == 0) return false;
    --left_;
    return true;
  }

 private:
  int left_;
};

// The pause after a try that did not help: twice as long each time, up to `most`.
class Rest {
 public:
  Rest(int looks, int most) : patience_(looks, most) {}

  void Begin() {
    pause_.Begin(patience_.looks());
    patience_.Double();
  }
  bool Passes() { return pause_.Passes(); }

 private:
  Patience patience_;
  Pause pause_;
};

}  // namespace penstock
