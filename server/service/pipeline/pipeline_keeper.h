// What of a pipeline comes back after a restart of the daemon (KeptState), and the writing of it:
// its timeline, whether it is paused, what its groups were given, and which of them are complete.
// What is to have an effect is written down first.
//
// Threads:  safe from any thread. What writes waits for the disk, and for nothing else.
// Owns:     the timeline.
// Limits:   kMaxPolicies groups.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "penstock/v1/control.pb.h"
#include "ring/writer.h"
#include "server/engine/plan/cursor.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_events.h"
#include "server/service/state/timeline.h"

namespace penstock {

class PipelineKeeper {
 public:
  // Groups that have been told what becomes of slow consumers.
  static constexpr size_t kMaxPolicies = 64;
  // Notices of cursors that are kept.
  static constexpr size_t kMaxNotices = 4;

  // `timeline` is that of the history in `basis.options.state`.
  PipelineKeeper(const PipelineBasis& basis, const PipelineEvents& events, Timeline timeline);

  Timeline timeline() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return timeline_;
  }
  // Calls `look` while nobody exchanges the timeline, nor takes the numbers of its last change. It
  // takes no lock but that of the numbers.
  void Look(const std::function<void(const Timeline& timeline)>& look) const;
  // Its spec as it is now, from the last change on.
  v1::PipelineSpec LastSpec() const;
  // The position of a cursor, of the beginning for "".
  absl::StatusOr<ResumePoint> Read(const std::string& cursor) const;
  // What the users of the pipeline should know of its updates, and of the cursors that were read.
  std::vector<std::string> Notices() const;

  // Writes a timeline down and takes it; then, at the same moment to whoever looks, calls `take`
  // for the numbers of its last change, which may be null. Aborted:
  // it is not made of the one with that etag.
  absl::Status Keep(const std::string& etag, Timeline timeline, const std::function<void()>& take);
  // The change that waits for any epoch waits for that one. False as EpochBegins(), from where it
  // is called, too: a successor would find another one, where streams begin further on.
  bool EpochIsKnown(uint64_t epoch);
  // The change that waits for its epoch begins at that step. False where that could not be written
  // down: then it waits on, as a successor would not know that somebody has steps of it, and is
  // asked again. From a stream's own thread.
  bool EpochBegins(uint64_t step);
  // How long an epoch has waited for its beginning to be written down; nullopt: none does.
  std::optional<uint64_t> EpochUnkeptNs() const;

  bool paused() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return paused_;
  }
  // As Pipeline::Pause(), but for the streams. Whether it was otherwise before.
  absl::StatusOr<bool> Pause(bool paused, std::string* notice);

  // What the group was given, if it was.
  std::optional<std::pair<ring::SlowPolicy, uint32_t>> SlowPolicyOf(const std::string& group) const;
  // ResourceExhausted for too many groups; another error where it cannot be written down: then
  // nothing is changed.
  absl::Status SetSlowPolicy(const std::string& group, ring::SlowPolicy slow, uint32_t lag_ms);

  // As in KeptState.
  std::optional<std::set<std::string>> complete_groups() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return complete_groups_;
  }
  // Writes down which groups are complete, where that has changed.
  void KeepCompleteGroups(std::set<std::string> groups);

  // Writes all of it again, which could not be kept while the pipeline was being made.
  void KeepState();
  // As Pipeline::Retire().
  void Retire(bool retired);

 private:
  // Writes down what has become of the change that waits, and takes it. False where that cannot be
  // written: then "`what` could not be written down" is told, once. REQUIRES: journal_mutex_.
  bool KeepEpoch(Timeline timeline, const std::string& what);
  // REQUIRES: mutex_.
  KeptState StateWith(const Timeline& timeline) const;
  // NotFound where it is not kept any more. REQUIRES: journal_mutex_.
  absl::Status Write(const KeptState& state) const;
  // The state as it would be with the change. REQUIRES: journal_mutex_.
  absl::Status WriteState(const std::function<void(KeptState&)>& change = nullptr) const;

  const std::string& name_;
  const PipelineOptions& options_;
  const PipelineEvents& events_;

  // One change of what is kept after the other, with its writing. Before mutex_; who has it waits
  // for nothing but the disk.
  std::mutex journal_mutex_;
  bool retired_ = false;  // under journal_mutex_
  bool unkept_ = false;   // under journal_mutex_: it goes on, but is written down as paused
  // Since when an epoch waits for its beginning to be written down; 0: none does.
  std::atomic<int64_t> epoch_unkept_ns_{0};

  // Who changes what stands below has journal_mutex_, too. Before the numbers' lock.
  mutable std::mutex mutex_;
  Timeline timeline_;  // under mutex_
  bool paused_;        // under mutex_
  // Under mutex_: what groups were given, by name.
  std::map<std::string, std::pair<ring::SlowPolicy, uint32_t>> slow_policies_;
  std::optional<std::set<std::string>> complete_groups_;  // under mutex_: as in KeptState
  mutable std::vector<std::string> notices_;  // under mutex_: of cursors, the latest at the end
};

}  // namespace penstock
