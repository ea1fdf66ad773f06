// A plan that runs under a name: its executor, its ring, and how it stands.
//
// Threads:  safe from any thread.
// Owns:     the executor until Close(), the ring until the last reference to the pipeline is gone: a
//           consumer's session keeps one, so that a ring outlives its deletion while it is read.
// Cost:     Create() lists and opens files and allocates the ring; it may take a second for a large
// one.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "base/file.h"
#include "base/numa_node.h"
#include "penstock/v1/control.pb.h"
#include "penstock/v1/server.pb.h"
#include "ring/split_log.h"
#include "ring/writer.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/plan.h"
#include "server/engine/run/executor.h"
#include "server/service/pipeline/checked_pipeline.h"
#include "server/service/state/high_water.h"
#include "server/service/state/split_file.h"
#include "server/service/state/timeline.h"
#include "server/service/stream/memory_budget.h"
#include "server/service/stream/ring_sink.h"
#include "server/service/stream/stream.h"
#include "server/service/stream/tuning.h"
#include "server/service/watch/analysis.h"

namespace penstock {

// What a pipeline is besides its spec: it comes back so after a restart of the daemon.
struct KeptState {
  std::vector<v1::Change> history;
  bool paused = false;
  // What groups were given, by name.
  std::map<std::string, std::pair<ring::SlowPolicy, uint32_t>> slow_policies;
  // ring::Writer::CompleteGroups(); absent: not known.
  std::optional<std::set<std::string>> complete_groups = std::set<std::string>();
  // Timeline::MeaningsOfPhases(); absent: there was none of this history before.
  std::optional<std::vector<v1::Meanings>> meanings = std::nullopt;
};

// Where a pipeline is to begin, and what it needs for that. `files` of Create() must outlive it.
struct PipelineOptions {
  std::string cursor;  // "": at its beginning
  ChangedWork changed_work = ChangedWork::kRefuse;
  v1::WorkerDefaults defaults;
  // How far it has been handed out; null: nobody wants to know when the daemon has ended.
  std::shared_ptr<HighWater> high_water = nullptr;
  // Where its split groups are remembered; null: nowhere.
  std::shared_ptr<SplitFiles> split_files;
  // It was there before a restart: it begins when StartAgain() says who has come back.
  bool returns = false;
  // Of an earlier run, or of this one before a restart.
  KeptState state;
  // Keeps a state, a history before it takes effect; null: it is not kept.
  std::function<absl::Status(const KeptState& state)> write_state = nullptr;
  std::string state_path = {};  // where, for who is told
  // Told of what is done to it; may be null.
  std::function<void(v1::Event event)> on_event = nullptr;
  // Whose it is, and what its ring's memory is taken from; null: there is no limit.
  MemoryOwner owner = {};
  std::shared_ptr<MemoryBudget> memory = nullptr;
  // What it computes and keeps is charged to; null: there is no limit.
  std::shared_ptr<MemoryAccount> work_memory = nullptr;
  // Says why nobody wants it any more, while it is being made; may be null. Not called afterwards.
  Unwanted unwanted = nullptr;
  // Where it finds work that other pipelines do too; null: nowhere.
  std::shared_ptr<SharedPrefixes> prefixes = nullptr;
  // What maps of its files are taken from; null: none are kept.
  std::shared_ptr<SharedMaps> maps = nullptr;
  // Of the request that made it; "": it had none.
  std::string request_id;
  // Where what hangs in a read is left; null: it is waited for.
  std::shared_ptr<Leftovers> leftovers = nullptr;
};

// What UpdatePipelineRequest and SeekPipelineRequest ask for.
struct RequestedChange {
  v1::Change change;             // its step is ignored
  std::optional<uint64_t> step;  // absent: the earliest possible one
  bool at_next_epoch = false;    // `change.stage` is all stages
  std::string etag;              // "": whatever it is
  bool withdraw = false;         // the one that waits is taken back; `change` is its time only
};

// Where a drained pipeline stands.
struct DrainedAt {
  uint64_t step = 0;
  std::string cursor;
};

// Somebody who wants to attach.
struct Newcomer {
  ring::ConsumerSpec spec;
  ring::ConsumerPosition position;
  int32_t pid = 0;
  uint32_t uid = UINT32_MAX;  // nobody's
};

// What an attached consumer holds on to.
struct Attached {
  std::shared_ptr<Stream> stream;
  bool is_replay = false;  // nobody else ever reads the stream
  ring::ConsumerHandle handle;
};

class Held;

class Pipeline {
 public:
  // Production starts at once, unless it returns.
  static absl::StatusOr<std::shared_ptr<Pipeline>> Create(const v1::PipelineSpec& spec,
                                                          const PipelineOptions& options,
                                                          FileSystem& files);
  ~Pipeline();

  const std::string& name() const { return name_; }
  // With drawn seeds.
  const v1::PipelineSpec& spec() const { return checked_.plan->spec(); }
  v1::Pipeline Describe() const;
  // `streams`: the ordinals of the streams of its consumers, each of which numbers its own; may be null.
  v1::PipelineStats Stats(std::vector<uint64_t>* streams = nullptr) const;
  v1::ListSkippedResponse Skipped() const;
  // Others know of it now: what it could not have of its NUMA node is told from here on.
  void Announce();
  // How often its consumers were found waiting.
  std::vector<WaitLooks> Waits() const;
  // FailedPrecondition when nothing has been made yet, or another sample is being taken.
  absl::StatusOr<v1::SamplePipelineResponse> Sample(int sheet_rows, bool with_numbers) const;
  // None after Close().
  std::vector<WorkerPulse> Pulses() const;

  // Where the newcomer's position is no more in the ring that all share, that begins anew there, if
  // nobody reads it; else the newcomer gets a small ring of its own until it has caught up (replay).
  // May take as long as making a ring.
  absl::StatusOr<Attached> Attach(const Newcomer& newcomer);

  // Begins at the lowest position of those who have come back after a restart, and lets them in.
  std::vector<absl::StatusOr<Attached>> StartAgain(const std::vector<Newcomer>& newcomers);
  // Whether StartAgain() found too little memory, or too few threads, and may be called again.
  bool MayBeginLater() const;

  // --- steering (pipeline_steering.cc), and who is there (pipeline_watching.cc) ---
  std::string etag() const;
  std::vector<v1::Meanings> MeaningsOfPhases() const { return timeline().MeaningsOfPhases(); }
  std::optional<std::set<std::string>> complete_groups() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return complete_groups_;
  }
  // Who created it; -1: nobody.
  uid_t owner_uid() const { return options_.owner.uid; }
  // Its spec as it is now, from the last change on.
  v1::PipelineSpec LastSpec() const;
  // Begins no further batch, or goes on; also after a restart. A pause that cannot be written down is an error, and none. One that ends
  // ends: where that cannot be written down `notice` says so, and Pause(false) tries again.
  absl::Status Pause(bool paused, std::string* notice = nullptr);
  // Whether whoever asked for what takes long has gone; looked at again and again.
  using Cancelled = std::function<bool()>;
  // Pauses, and waits for the consumers. DeadlineExceeded names who has not taken all.
  absl::StatusOr<DrainedAt> Drain(absl::Duration timeout, const Cancelled& cancelled);
  // Returns the change as it stands in the history; nothing is changed when it fails. Aborted: the
  // etag is another one. `notice`: why it holds from a later step on than the next one, where no step was asked for.
  absl::StatusOr<v1::Change> Update(const RequestedChange& requested,
                                    std::string* notice = nullptr);
  // Keeps its state again, which could not be kept while it was being made.
  void KeepState();
  // NotFound; FailedPrecondition when several have the number, and `pid` is 0.
  absl::Status DetachConsumer(uint32_t id, int32_t pid);
  // An error where it cannot be written down: then nothing is changed.
  absl::Status SetSlowPolicy(const std::string& group, ring::SlowPolicy slow, uint32_t lag_ms);
  v1::ListGroupsResponse Groups() const;
  // Which of its numbers are the daemon's to choose (worker_defaults.autotune).
  Tunes tunes() const;
  // The workers of the daemon's configuration, or one for each processor that they may use.
  int DefaultWorkers() const;
  // The usable processors of its NUMA node; nullopt where its workers run on any.
  std::optional<int> NodeProcessors() const;
  // Slots that its ring may have within all budgets; 0 while it has none.
  uint32_t MostSlots() const;
  // Takes them, without a change of the history; `report` is told by Stats(). Nothing while something else is changed, for which nobody
  // waits here.
  absl::Status Tune(const Tuning& wanted, v1::Autotune report);
  // What the workers did for so long. FailedPrecondition when that is being asked for already.
  absl::StatusOr<WorkSpans> Profile(absl::Duration duration, const Cancelled& cancelled);
  std::vector<std::string> StageNames() const;

  // Whether nobody has read it for `idle_ns` and it may rest: where its position can be found again at
  // once. From one thread, a few times in `idle_ns`.
  bool MayRest(uint64_t now_ns, uint64_t idle_ns);
  // Gives its memory and its threads back, unless somebody has come meanwhile. It goes on with the same
  // step when somebody attaches, or changes it. Waits for its workers.
  void Rest();

  // Ends those of its streams in which a read takes longer than its deadline. To be called a few times in that time.
  void EndAtHungReads();
  // As HighWater::Look().
  void LookAtHighWater() { high_water_->Look(); }
  // Leaves behind how far it has been handed out. REQUIRES: Close() has returned.
  void LeaveHighWater();

  // As Writer::Tick.
  void Tick(uint64_t now_ns, uint64_t rejoin_ns);

  // Its state is not kept any more, and what is being written is waited for; or is kept again. Of a pipeline that is deleted: its name may
  // be another one's.
  void Retire(bool retired);

  // Stops the executor; its consumers get `reason` after the batches that were ready, unless the
  // stream had ended before.
  void Close(const absl::Status& reason);

 private:
  Pipeline(CheckedPipeline checked, Timeline timeline, const PipelineOptions& options,
           FileSystem& files)
      : name_(checked.plan->spec().name()),
        checked_(std::move(checked)),
        options_(WithoutCaller(options)),
        files_(files),
        high_water_(options.high_water != nullptr ? options.high_water
                                                  : HighWater::Create({.pipeline = name_})),
        timeline_(std::move(timeline)),
        workers_(checked_.workers),
        slots_(checked_.slots),
        workers_are_chosen_(checked_.plan->spec().workers() > 0),
        slots_are_chosen_(checked_.plan->spec().ring().slots() > 0),
        read_ahead_is_chosen_(checked_.plan->spec().read_ahead_bytes() > 0),
        paused_(options.state.paused),
        slow_policies_(options.state.slow_policies),
        complete_groups_(options.state.complete_groups) {
    if (read_ahead_is_chosen_) read_ahead_[""] = checked_.plan->spec().read_ahead_bytes();
    for (const v1::Change& change : timeline_.history()) TakeNumbers(change);
  }
  // What holds beyond the call that makes the pipeline.
  static PipelineOptions WithoutCaller(PipelineOptions options) {
    options.unwanted = nullptr;
    return options;
  }
  // What Create() does before there is a stream, and what is to be kept until there is one.
  struct Prepared {
    std::shared_ptr<Pipeline> pipeline;
    std::shared_ptr<void> indices;
  };
  static absl::StatusOr<Prepared> Prepare(const v1::PipelineSpec& spec,
                                          const PipelineOptions& options, FileSystem& files);
  ReadDeadline read_deadline() const { return {checked_.read_deadline_ns, options_.leftovers}; }

  // --- pipeline_numbers.cc ---
  absl::Status CheckNumbers(const v1::Change& change) const;
  // Those of a change. REQUIRES: mutex_, or nobody else has the pipeline yet.
  void TakeNumbers(const v1::Change& change);
  // What a change does to the streams that run. REQUIRES: attach_mutex_, and they are held.
  absl::Status ApplyNumbers(const v1::Change& change,
                            const std::vector<std::shared_ptr<Stream>>& streams);
  // With the pipeline's own limit.
  MemoryOwner Limited(MemoryOwner owner) const {
    owner.own_limit = memory_bytes_;
    return owner;
  }
  // What a slot takes at the most.
  uint64_t SlotCost() const;
  uint32_t SlotsWithin(uint64_t memory_bytes) const;
  // Nobody has named the number of slots, and it may change. REQUIRES: mutex_.
  bool DepthIsFree() const;

  // A step, or for `at_next_epoch` the epoch, at which the change may hold. REQUIRES: the streams of `held` are held.
  absl::Status Place(const RequestedChange& requested, const Timeline& timeline, const Held& held,
                     v1::Change* change, std::string* notice) const;
  absl::Status PlaceAtEpoch(const RequestedChange& requested, const Timeline& timeline,
                            const Held& held, v1::Change* change) const;
  // Takes the change back that waits. Under update_mutex_.
  absl::StatusOr<v1::Change> Withdraw(const RequestedChange& requested, Timeline timeline);
  // Writes a timeline down and takes it. Aborted: it is not made of the one with that etag.
  absl::Status Keep(const std::string& etag, Timeline timeline, const v1::Change& change);
  // The change that waits for its epoch begins at that step. False where that could not be written down: then it waits on, as a successor
  // would not know that somebody has steps of it, and is asked again. From a stream's own thread.
  bool EpochBegins(uint64_t step);
  Timeline timeline() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return timeline_;
  }
  uint32_t slots() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return slots_;
  }
  // The shared one first.
  std::vector<std::shared_ptr<Stream>> AllStreams() const;
  // REQUIRES: mutex_.
  KeptState StateWith(const Timeline& timeline) const;
  // NotFound where it is not kept any more. REQUIRES: journal_mutex_.
  absl::Status Write(const KeptState& state) const;
  // The state as it would be with the change. REQUIRES: attach_mutex_.
  absl::Status WriteState(const std::function<void(KeptState&)>& change = nullptr);
  void Tell(v1::EventKind kind, std::string text, const v1::Change* change = nullptr) const;
  // What of its NUMA node it has not. Once, however many streams it has one after the other.
  void TellMisplaced(const std::string& notice);
  void AnnounceMisplaced(const std::string& notice) const;
  void SetState(v1::PipelineState* state, v1::PipelineError* error) const;
  std::shared_ptr<Stream> shared() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return shared_;
  }
  // The position of a cursor, of the beginning for "".
  absl::StatusOr<ResumePoint> Read(const std::string& cursor) const;
  // Fills in the step of a position that only has a cursor, and checks one that has both.
  absl::StatusOr<ring::ConsumerPosition> Complete(const ring::ConsumerPosition& position) const;
  // A stream for one consumer alone, which is behind, finds nothing that others wait for.
  absl::StatusOr<std::shared_ptr<Stream>> MakeStream(const std::string& cursor, uint32_t slots,
                                                     const MemoryOwner& owner, bool for_all = true);
  // Whether nobody loses anything when the stream goes elsewhere for a consumer of `group`: no consumer that takes or holds something, no
  // other split group with steps that were held and are not done, and no group of before a restart.
  bool MayMove(const ring::Writer& writer, std::string_view group) const;
  // Makes the shared stream again where it was, if it rests. REQUIRES: attach_mutex_.
  absl::Status EndRest();
  // Of those of StartAgain() that have no result yet, who is at the lowest position from which a stream can be made; -1: nobody.
  int FindLowest(const std::vector<Newcomer>& placed,
                 const std::vector<absl::StatusOr<Attached>>& results, uint64_t highest) const;
  // Makes the shared stream anew, which nobody reads. Where that fails, and there was one, it goes on where it was.
  absl::Status Restart(const std::string& cursor);
  // As Attach(). REQUIRES: attach_mutex_.
  absl::StatusOr<Attached> Enter(const Newcomer& newcomer);
  // Writes down which groups are complete, where that has changed. REQUIRES: attach_mutex_.
  void KeepCompleteGroups();
  // Who catches up in a ring of its own has its name or rank as those in the shared one have: AlreadyExists, or it is sent away.
  absl::Status MakeWay(const ring::ConsumerSpec& spec) const;
  // A ring of its own for one who is behind the shared one.
  absl::StatusOr<Attached> Replay(const Newcomer& newcomer);
  struct ReplayStream {
    std::shared_ptr<Stream> stream;
    // What its consumer has asked for: a rank's place in the shared stream waits for it.
    ring::ConsumerSpec spec;
  };
  std::vector<ReplayStream> Replays() const;
  // Which places of rank groups wait for somebody who catches up, and which no longer do.
  static void TellOfPlaces(const std::vector<ReplayStream>& replays, ring::Writer* shared);
  // Whether a trainer that asks for the device's memory may have it.
  absl::Status MayHaveDevice(const Stream& stream, const Newcomer& newcomer) const;
  absl::StatusOr<Attached> AttachTo(std::shared_ptr<Stream> stream, const Newcomer& newcomer);

  // Where a stream goes on that rests, and whether it had ended by itself.
  struct RestingAt {
    DrainedAt at;
    bool finished = false;
  };

  const std::string name_;
  const CheckedPipeline checked_;
  const PipelineOptions options_;
  FileSystem& files_;
  const std::shared_ptr<HighWater> high_water_;
  const std::shared_ptr<std::atomic<uint64_t>> memory_bytes_ =
      std::make_shared<std::atomic<uint64_t>>(0);  // its own limit; 0: none

  // Set by StartAgain(): the shared stream has groups of before the restart.
  std::atomic<bool> has_restored_groups_{false};

  std::atomic<uint64_t> last_stream_{0};  // the ordinal of the one that was made last

  uint64_t idle_since_ns_ = 0;  // of MayRest(); 0: somebody reads it

  // One update after the other. Before attach_mutex_.
  std::mutex update_mutex_;

  // Since when an epoch waits for its beginning to be written down; 0: none does.
  std::atomic<int64_t> epoch_unkept_ns_{0};
  bool unkept_ = false;  // under attach_mutex_: it goes on, but is written down as paused

  // One writing of the state after the other. Behind those two; who has it waits for nothing but the disk.
  std::mutex journal_mutex_;
  bool retired_ = false;  // under journal_mutex_

  // One attachment after the other, since it may make the shared stream anew.
  std::mutex attach_mutex_;
  // Under attach_mutex_: what StartAgain() has read, until it succeeds.
  std::optional<std::map<std::string, ring::SplitState>> splits_;

  std::mutex misplaced_mutex_;
  std::set<std::string> misplaced_;  // under misplaced_mutex_: what was told, or will be
  bool is_announced_ = false;        // under misplaced_mutex_

  mutable std::mutex mutex_;
  std::shared_ptr<Stream>
      shared_;            // under mutex_; null before StartAgain(), after a failure, at rest
  absl::Status failure_;  // under mutex_: why there is no shared stream
  std::optional<RestingAt> resting_;  // under mutex_
  bool closed_ = false;               // under mutex_
  Timeline timeline_;                 // under mutex_
  int workers_;                       // under mutex_
  uint32_t slots_;                    // under mutex_
  // Under mutex_: by the spec or an update, and not by the daemon.
  bool workers_are_chosen_;
  bool slots_are_chosen_;
  bool read_ahead_is_chosen_;
  std::map<std::string, int64_t> read_ahead_;  // under mutex_: as ExecutorOptions::read_ahead
  v1::Autotune autotune_;                      // under mutex_
  bool paused_;                                // under mutex_
  // Under mutex_: what groups were given, by name.
  std::map<std::string, std::pair<ring::SlowPolicy, uint32_t>> slow_policies_;
  std::optional<std::set<std::string>> complete_groups_;  // under mutex_: as in KeptState
  // Under mutex_; the sessions own the streams. With ReplayStream::spec.
  std::vector<std::pair<std::weak_ptr<Stream>, ring::ConsumerSpec>> replays_;
};

}  // namespace penstock
