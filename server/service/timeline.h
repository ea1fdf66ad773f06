// Which plan makes which steps of a pipeline: the one that it began with, and those that changes of a
// running pipeline put in its place.
//
//   step    0                    1200                        5000
//   phase   0: as created        1: weights 0.9, 0.1         2: batch_size 64, 10 steps left out
//
// The positions of all phases are alike (engine/plan_change.h): each goes on where the one before it
// stood, unless it seeks.
//
// Threads:  a value; constant ones are safe from any thread.
// Cost:     Prepare() makes a plan where stages change: it lists and opens files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/steering.pb.h"
#include "server/base/file.h"
#include "server/engine/cursor.h"
#include "server/engine/plan.h"

namespace penstock {

struct Phase {
  uint64_t first_step = 0;
  std::shared_ptr<const Plan> plan;
  v1::Fingerprint fingerprint;
  uint64_t skip_steps = 0;       // left out in front of its first step
  std::optional<Position> seek;  // where it begins, if not where the one before it ended
};

class Timeline {
 public:
  static constexpr size_t kMaxChanges = 1000;

  Timeline(std::shared_ptr<const Plan> plan, v1::Fingerprint fingerprint);

  // The plan that a change of stages makes of the last one, whatever the change's step; null without
  // one. FailedPrecondition for what cannot be changed.
  struct NextPlan {
    std::shared_ptr<const Plan> plan;
    v1::Fingerprint fingerprint;
  };
  absl::StatusOr<NextPlan> Prepare(const v1::Change& change, FileSystem& files) const;
  // Leaves the timeline as it is when it fails: FailedPrecondition for a step before that of the last
  // change. REQUIRES: `next` is what Prepare() has made of the change.
  absl::Status Add(const v1::Change& change, NextPlan next);

  const Phase& first() const { return phases_.front(); }
  const Phase& last() const { return phases_.back(); }
  const std::vector<v1::Change>& history() const { return history_; }
  // Another one for every history; the same after a restart.
  std::string Etag() const;
  // Whether some change has an effect on the bytes.
  bool is_steered() const { return phases_.size() > 1; }

  // The position that a cursor of one of the phases stands for; of the beginning for "".
  absl::StatusOr<ResumePoint> Read(const std::string& cursor,
                                   ChangedWork changed_work = ChangedWork::kRefuse) const;
  // Those that make the steps from `step` on; the first has begun already if its first step is lower.
  std::vector<Phase> From(uint64_t step) const;

 private:
  std::vector<Phase> phases_;
  std::vector<v1::Change> history_;
};

}  // namespace penstock
