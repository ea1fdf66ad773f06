// A plan that runs under a name: what its parts make together. Each part has the state that it is
// named after, and the locks of that.
//
//   steering ───────┐                 updates, pauses                       update_mutex_
//   attachments ────┴─► streams       who reads where, out of which ring    attach_mutex_;  Lock(), mutex_
//                          │
//                          ├─► keeper    what comes back after a restart    journal_mutex_, mutex_
//                          ├─► numbers   workers, slots, read-ahead         mutex_
//                          └─► events    what is told                       misplaced_mutex_
//
// Who has a lock takes only those that stand further down in this order, each of which may be left
// out:
//
//   update_mutex_ or attach_mutex_ ─► streams' Lock() ─► keeper's journal_mutex_ ─► keeper's mutex_ ─► numbers' mutex_
//
// Under the streams' mutex_ and under misplaced_mutex_ nothing is taken. Streams, rings, the
// high-water step and those who listen to events are called under the locks down to journal_mutex_,
// and never call back under one of their own.
//
// Threads:  safe from any thread.
// Owns:     the executor until Close(), the ring until the last reference to the pipeline is gone:
//           a consumer's session keeps one, so that a ring outlives its deletion while it is read.
// Cost:     Create() lists and opens files and allocates the ring; it may take a second for a large
//           one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "penstock/v1/control.pb.h"
#include "ring/writer.h"
#include "server/engine/plan/plan.h"
#include "server/engine/run/executor.h"
#include "server/service/pipeline/checked_pipeline.h"
#include "server/service/pipeline/pipeline_attachments.h"
#include "server/service/pipeline/pipeline_basis.h"
#include "server/service/pipeline/pipeline_events.h"
#include "server/service/pipeline/pipeline_keeper.h"
#include "server/service/pipeline/pipeline_numbers.h"
#include "server/service/pipeline/pipeline_steering.h"
#include "server/service/pipeline/pipeline_streams.h"
#include "server/service/pipeline/pipeline_watching.h"
#include "server/service/state/timeline.h"
#include "server/service/stream/tuning.h"
#include "server/service/watch/analysis.h"

namespace penstock {

class Pipeline {
 public:
  // Production starts at once, unless it returns.
  static absl::StatusOr<std::shared_ptr<Pipeline>> Create(const v1::PipelineSpec& spec,
                                                          const PipelineOptions& options,
                                                          FileSystem& files);
  ~Pipeline();

  const std::string& name() const { return basis_.name; }
  // With drawn seeds.
  const v1::PipelineSpec& spec() const { return basis_.checked.plan->spec(); }
  // Who created it; -1: nobody.
  uid_t owner_uid() const { return basis_.options.owner.uid; }

  // --- watching ---
  v1::Pipeline Describe() const { return watching_.Describe(); }
  // `streams`: the ordinals of the streams of its consumers, each of which numbers its own; may be
  // null.
  v1::PipelineStats Stats(std::vector<uint64_t>* streams = nullptr) const {
    return watching_.Stats(streams);
  }
  v1::ListSkippedResponse Skipped() const { return watching_.Skipped(); }
  v1::ListGroupsResponse Groups() const { return watching_.Groups(); }
  // How often its consumers were found waiting.
  std::vector<WaitLooks> Waits() const { return watching_.Waits(); }
  // FailedPrecondition when nothing has been made yet, or another sample is being taken.
  absl::StatusOr<v1::SamplePipelineResponse> Sample(int sheet_rows, bool with_numbers) const {
    return watching_.Sample(sheet_rows, with_numbers);
  }
  // None after Close().
  std::vector<WorkerPulse> Pulses() const { return watching_.Pulses(); }
  // Whether whoever asked for what takes long has gone; looked at again and again.
  using Cancelled = std::function<bool()>;
  // What the workers did for so long, and when consumers waited. FailedPrecondition when that is
  // being asked for already.
  absl::StatusOr<TakenProfile> Profile(absl::Duration duration, const Cancelled& cancelled) {
    return watching_.Profile(duration, cancelled);
  }
  // Others know of it now: what it could not have of its NUMA node is told from here on.
  void Announce() { events_.Announce(); }

  // --- attachments ---
  // Where the newcomer's position is no more in the ring that all share, that begins anew there, if
  // nobody reads it; else the newcomer gets a small ring of its own until it has caught up
  // (replay). May take as long as making a ring.
  absl::StatusOr<Attached> Attach(const Newcomer& newcomer) {
    return attachments_.Attach(newcomer);
  }
  // Begins at the lowest position of those who have come back after a restart, and lets them in.
  std::vector<absl::StatusOr<Attached>> StartAgain(const std::vector<Newcomer>& newcomers) {
    return attachments_.StartAgain(newcomers);
  }
  // Whether StartAgain() found too little memory, or too few threads, and may be called again.
  bool MayBeginLater() const { return streams_.MayBeginLater(); }
  // NotFound; FailedPrecondition when several have the number, and `pid` is 0.
  absl::Status DetachConsumer(uint32_t id, int32_t pid) { return attachments_.Detach(id, pid); }

  // --- steering ---
  std::string etag() const { return keeper_.timeline().Etag(); }
  std::vector<v1::Meanings> MeaningsOfPhases() const {
    return keeper_.timeline().MeaningsOfPhases();
  }
  // Its spec as it is now, from the last change on.
  v1::PipelineSpec LastSpec() const { return keeper_.LastSpec(); }
  std::vector<std::string> StageNames() const;
  // Begins no further batch, or goes on; also after a restart. A pause that cannot be written down
  // is an error, and none. One that ends ends: where that cannot be written down `notice` says so,
  // and Pause(false) tries again.
  absl::Status Pause(bool paused, std::string* notice = nullptr, const Asker& by = {}) {
    return steering_.Pause(paused, notice, by);
  }
  // Pauses, and waits for the consumers. DeadlineExceeded names who has not taken all.
  absl::StatusOr<DrainedAt> Drain(absl::Duration timeout, const Cancelled& cancelled,
                                  const Asker& by = {});
  // Returns the change as it stands in the history; nothing is changed when it fails. Aborted: the
  // etag is another one. `notice`: why it holds from a later step on than the next one, where no
  // step was asked for.
  absl::StatusOr<v1::Change> Update(const RequestedChange& requested,
                                    std::string* notice = nullptr) {
    return steering_.Update(requested, notice);
  }
  // An error where it cannot be written down: then nothing is changed.
  absl::Status SetSlowPolicy(const std::string& group, ring::SlowPolicy slow, uint32_t lag_ms,
                             const Asker& by = {}) {
    return steering_.SetSlowPolicy(group, slow, lag_ms, by);
  }
  // NotFound where there is none of that name.
  absl::Status DropGroup(const std::string& group, const Asker& by = {}) {
    return steering_.DropGroup(group, by);
  }

  // --- numbers ---
  // Which of its numbers are the daemon's to choose (worker_defaults.autotune).
  Tunes tunes() const { return numbers_.tunes(); }
  // The workers of the daemon's configuration, or one for each processor that they may use.
  int DefaultWorkers() const { return numbers_.DefaultWorkers(); }
  // The usable processors of its NUMA node; nullopt where its workers run on any.
  std::optional<int> NodeProcessors() const { return numbers_.NodeProcessors(); }
  // Of `wanted` workers those that its owner may have.
  int MostWorkers(int wanted) const { return numbers_.MostWorkers(wanted); }
  // Slots that its ring may have within all budgets; 0 while it has none.
  uint32_t MostSlots() const;
  // Takes them, without a change of the history; `report` is told by Stats(). Nothing while
  // something else is changed, for which nobody waits here.
  absl::Status Tune(const Tuning& wanted, v1::Autotune report) {
    return steering_.Tune(wanted, std::move(report));
  }

  // --- what is kept ---
  std::optional<std::set<std::string>> complete_groups() const { return keeper_.complete_groups(); }
  // Keeps its state again, which could not be kept while it was being made.
  void KeepState() { keeper_.KeepState(); }
  // Its state is not kept any more, and what is being written is waited for; or is kept again. Of a
  // pipeline that is deleted: its name may be another one's.
  void Retire(bool retired) { keeper_.Retire(retired); }
  // As HighWater::Look().
  void LookAtHighWater() { basis_.high_water->Look(); }
  // Leaves behind how far it has been handed out. REQUIRES: Close() has returned.
  void LeaveHighWater();

  // --- time passes ---
  // Whether nobody has read it for `idle_ns` and it may rest: where its position can be found again
  // at once. From one thread, a few times in `idle_ns`.
  bool MayRest(uint64_t now_ns, uint64_t idle_ns) { return streams_.MayRest(now_ns, idle_ns); }
  // Gives its memory and its threads back, unless somebody has come meanwhile. It goes on with the
  // same step when somebody attaches, or changes it. Waits for its workers.
  void Rest() { streams_.Rest(); }
  // Ends those of its streams in which a read takes longer than its deadline. To be called a few
  // times in that time.
  void EndAtHungReads() { streams_.EndAtHungReads(); }
  // As Writer::SetGuestWait, from the next Tick() on.
  void SetGuestWait(uint64_t guest_wait_ns) { streams_.SetGuestWait(guest_wait_ns); }
  // As Writer::Tick.
  void Tick(uint64_t now_ns, uint64_t rejoin_ns) { streams_.Tick(now_ns, rejoin_ns); }
  // Stops the executor; its consumers get `reason` after the batches that were ready, unless the
  // stream had ended before.
  void Close(const absl::Status& reason) { streams_.Close(reason); }

 private:
  Pipeline(CheckedPipeline checked, Timeline timeline, const PipelineOptions& options,
           FileSystem& files)
      : basis_(std::move(checked), options, files),
        events_(basis_.name, options.on_event),
        numbers_(basis_, timeline.history()),
        keeper_(basis_, events_, std::move(timeline)),
        streams_(basis_, events_, numbers_, keeper_),
        attachments_(basis_, numbers_, keeper_, streams_),
        steering_(basis_, events_, numbers_, keeper_, streams_),
        watching_(basis_, numbers_, keeper_, streams_) {}
  // What Create() does before there is a stream, and what is to be kept until there is one.
  struct Prepared {
    std::shared_ptr<Pipeline> pipeline;
    std::shared_ptr<void> indices;
  };
  static absl::StatusOr<Prepared> Prepare(const v1::PipelineSpec& spec,
                                          const PipelineOptions& options, FileSystem& files);

  const PipelineBasis basis_;
  PipelineEvents events_;
  PipelineNumbers numbers_;
  PipelineKeeper keeper_;
  PipelineStreams streams_;
  PipelineAttachments attachments_;
  PipelineSteering steering_;
  PipelineWatching watching_;
};

}  // namespace penstock
