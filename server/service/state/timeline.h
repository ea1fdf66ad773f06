// Which plan makes which steps of a pipeline: the one that it began with, and those that changes of
// a running pipeline put in its place.
//
//   step    0                    1200                        5000                                 6250, found out as it comes
//   phase   0: as created        1: weights 0.9, 0.1         2: batch_size 64, 10 steps left out  3: epoch 4 by other shards
//
// The positions of all phases are alike (engine/plan/plan_change.h): each goes on where the one
// before it stood, unless it seeks, or begins an epoch (engine/plan/pass_change.h). At which step
// an epoch begins is known when the stream gets there; until then the change waits, and no other
// one that changes bytes is taken. Where it is not even known which epoch the steps reach that
// somebody may have taken already, it waits for the first one behind them.
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
#include "base/file.h"
#include "penstock/v1/steering.pb.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/plan.h"

namespace penstock {

// Of a phase that waits for its epoch.
inline constexpr uint64_t kUnknownStep = UINT64_MAX;

// Whether it is to hold from the first epoch on that begins at its step or later, and which one
// that is nobody knows yet.
bool WaitsForAnyEpoch(const v1::Change& change);

// From where on a change holds: "step 1200", or of one that waits "epoch 4" or "the first epoch
// behind step 1199".
std::string FromWhere(const v1::Change& change);

struct Phase {
  uint64_t first_step = 0;
  std::shared_ptr<const Plan> plan;
  v1::Fingerprint fingerprint;  // of its cursors, with the changes of position up to its first step
  uint64_t skip_steps = 0;      // left out in front of its first step
  std::optional<Position> seek;  // where it begins, if not where the one before it ended
  std::optional<uint64_t> pass;  // of the outermost `repeat`: it begins with that one
  // Of the last phase that has steps in front of its first one: the changes of position, and the
  // OrderKey(), if there is such a phase.
  uint64_t moves_before = 0;
  std::optional<uint64_t> order_before = std::nullopt;
  // Of one that waits, and whose pass is not known yet: it begins with the first that begins at
  // that step or later.
  std::optional<uint64_t> any_pass_from = std::nullopt;
  // Nothing but the hosts that divide its batches differs from what the pipeline began with.
  bool only_divides = true;

  // It begins at that step, behind `last`, which has no step of its own where it begins there too.
  void BeginAt(uint64_t step, const Phase& last);
  // Whether its steps have other elements than they would have had without it.
  bool IsMove() const;
};

class Timeline {
 public:
  static constexpr size_t kMaxChanges = 1000;
  // Of a history that is read back: each of them may have been withdrawn, and left its numbers as
  // another one.
  static constexpr size_t kMaxKeptChanges = 2 * kMaxChanges;
  // Of the stages of a change, with the paths of their files.
  static constexpr size_t kMaxNamedBytes = size_t{1} << 20;

  // `layout`: for whose batches the rings are laid out; null: `plan`.
  Timeline(std::shared_ptr<const Plan> plan, v1::Fingerprint fingerprint,
           std::shared_ptr<const Plan> layout = nullptr);

  // The plan that a change of stages makes of the last one, whatever the change's step; null
  // without one. FailedPrecondition for what cannot be changed.
  struct NextPlan {
    std::shared_ptr<const Plan> plan;
    v1::Fingerprint fingerprint;
  };
  absl::StatusOr<NextPlan> Prepare(const v1::Change& change, FileSystem& files) const;
  // Leaves the timeline as it is when it fails: FailedPrecondition for a step before that of the
  // last change, ResourceExhausted where there are `limit` already. REQUIRES: `next` is what
  // Prepare() has made of the change.
  absl::Status Add(const v1::Change& change, NextPlan next, size_t limit = kMaxChanges);

  // Takes the last change of bytes back, and leaves it in the history as withdrawn; numbers that
  // came with it stay, as a change of their own. Returns it. FailedPrecondition where nothing
  // changes bytes from a step behind `next` on, the first that has not been begun.
  absl::StatusOr<v1::Change> Withdraw(uint64_t next, int64_t time_unix_ms);

  // Has a change that is to hold from an epoch on name its files one by one, since globs may match
  // others when it is made again; and, where it is the first of its kind, puts those of the
  // beginning into the history. ResourceExhausted where they are too many for a history, and
  // InvalidArgument where it cannot hold a name that is not UTF-8, unless the files are those of
  // before. REQUIRES: `next` is what Prepare() has made of the change.
  absl::Status NameFiles(const NextPlan& next, v1::Change* change);
  // The change that waits for any epoch behind a step waits for that one. REQUIRES:
  // waits_for_any_epoch().
  void KnowEpoch(uint64_t epoch);
  bool waits_for_any_epoch() const { return phases_.back().any_pass_from.has_value(); }
  // The change that waits for its epoch begins at that step. REQUIRES: is_waiting().
  void BeginWaiting(uint64_t step);
  bool is_waiting() const { return phases_.back().first_step == kUnknownStep; }
  // The last phase whose step is known.
  const Phase& known() const { return is_waiting() ? phases_[phases_.size() - 2] : phases_.back(); }
  // That of the last change, but for one that waits; 0 without any.
  uint64_t last_step() const;

  const Phase& first() const { return phases_.front(); }
  const Phase& last() const { return phases_.back(); }
  // One that waits stands at its end, without a step.
  const std::vector<v1::Change>& history() const { return history_; }
  // Another one for every history; the same after a restart.
  std::string Etag() const;
  // By which meanings of their ops its plans make their steps, in short: of the beginning, and of
  // each change of bytes.
  std::vector<v1::Meanings> MeaningsOfPhases() const;
  // Whether those that a timeline of the same history had are these: FailedPrecondition with the
  // stage that means something else. Those that are not there are all 1.
  absl::Status CheckMeaningsOfPhases(const std::vector<v1::Meanings>& kept) const;

  // A sentence for each change that brought other code of Python functions.
  std::vector<std::string> ChangesOfCode() const;
  // That of the change that was added last; also where it goes to the position of a cursor that was
  // made with other code. "" without.
  std::string NoticeOfCode(const v1::Change& change) const;

  // Whether some change has an effect on the bytes.
  bool is_steered() const { return phases_.size() > 1; }

  // The pipeline begins behind this cursor, and so may those changes of position that its run had
  // had, if the history has none there.
  void BeginBehind(const std::string& cursor, ChangedWork changed_work);

  // The position that a cursor of one of the phases stands for; of the beginning for "".
  // FailedPrecondition for one of a run whose steps in front of it had other elements.
  absl::StatusOr<ResumePoint> Read(const std::string& cursor,
                                   ChangedWork changed_work = ChangedWork::kRefuse) const;
  // The last change of hosts, if it is that one: who asks for it again is told so.
  std::optional<v1::Change> FindWorld(const v1::World& world, uint64_t step) const;
  // Those that make the steps from `step` on; the first has begun already if its first step is
  // lower.
  std::vector<Phase> From(uint64_t step) const;

 private:
  // That of the last change in front of the history's `index`-th that was not withdrawn; 0 without
  // any.
  uint64_t last_step_before(size_t index) const;
  // The position of a cursor that somebody seeks: that of any run with the stages of this epoch,
  // whatever came before.
  absl::StatusOr<Position> ReadSeek(const std::string& cursor) const;
  // `moves`: those that the pipeline begins behind.
  void SetFirstMoves(uint64_t moves);
  // What differs where the cursor's run had other changes of position in front of its step.
  absl::Status OtherMoves(const ResumePoint& point, uint64_t moves) const;

  std::shared_ptr<const Plan> layout_;
  std::vector<Phase> phases_;
  std::vector<v1::Change> history_;
};

}  // namespace penstock
