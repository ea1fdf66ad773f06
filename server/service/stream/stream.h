// One run of a pipeline: its phases from a position on, into a ring of its own. A pipeline has one
// that its consumers share, and a small one for each consumer that is catching up.
//
// An executor makes the steps of a phase. At its last one another executor goes on from its
// position, into the same ring: consumers notice nothing but the time that this takes.
//
// Threads:  safe from any thread; Start() once.
// Owns:     the ring until the last reference is gone (a consumer's session keeps one), the
//           executor until Stop(), and a thread that changes from phase to phase.
// Cost:     Create() allocates the ring: it may take a second for a large one. The next phase
//           begins as a resume from a cursor does: at once where the order can be sought.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/numa_node.h"
#include "ring/split_log.h"
#include "ring/writer.h"
#include "server/cuda/device_ring_sink.h"
#include "server/engine/plan/plan.h"
#include "server/engine/read/damage_log.h"
#include "server/engine/run/executor.h"
#include "server/service/state/high_water.h"
#include "server/service/state/timeline.h"
#include "server/service/stream/memory_budget.h"
#include "server/service/stream/placement.h"
#include "server/service/stream/ring_sink.h"
#include "server/service/stream/within_deadline.h"

namespace penstock {

struct StreamOptions {
  std::string name;      // the pipeline's
  uint64_t ordinal = 0;  // no other one of the pipeline has it
  uint32_t slots = 3;
  bool is_apart = false;           // as Stream::is_apart()
  bool tries_fewer_slots = false;  // as ring::Writer::TryFewerSlots()
  ResumePoint start;               // where the stream begins
  std::vector<Phase> phases;       // Timeline::From(start.step)
  int workers = 0;
  int worker_nice = 10;
  int holds = 0;                              // it begins held so often
  std::string start_cursor;                   // of that position, if it is known
  std::shared_ptr<ring::SplitLog> split_log;  // may be null
  std::shared_ptr<MemoryShare> memory;  // what its ring takes is taken from there; may be null
  std::shared_ptr<HighWater> high_water = nullptr;       // which steps it may make; null: all
  std::shared_ptr<SharedPrefixes> prefixes = nullptr;    // as ExecutorOptions has it
  std::shared_ptr<SharedMaps> maps = nullptr;            // likewise
  std::shared_ptr<StepLenders> helpers = nullptr;        // likewise
  std::shared_ptr<MemoryAccount> work_memory = nullptr;  // as ExecutorOptions::memory
  std::map<std::string, int64_t> read_ahead;             // as ExecutorOptions::read_ahead
  int numa_node = kNoNumaNode;                           // as PipelineSpec::numa_node
  // Told what of it could not be had. From Create() and from workers; it must not call back, and
  // may be null.
  std::function<void(const std::string& notice)> misplaced = nullptr;
  // Told which epoch the phase waits for that waits for any, before a step is made that may be of
  // it; as `epoch_begins`.
  std::function<bool(uint64_t epoch)> epoch_known;
  // Told at which step the epoch of the phase that waits for it begins, before a step of that is
  // made; again and again as long as it says no. From a thread of the stream's own, which Stop()
  // waits for; may be null.
  std::function<bool(uint64_t step)> epoch_begins;
  // How long a read may take before it ends the stream, and where workers that hang in one are left
  // when it is stopped; without leftovers they are waited for.
  ReadDeadline read_deadline = {};
};

// A damaged place, with the path of its file: files have numbers of their own in each phase.
struct SkippedRecord {
  SkippedPlace place;
  std::string path;
};

class Stream {
 public:
  // `first`: the plan that the pipeline began with; `layout`: for whose batches the ring is laid
  // out.
  static absl::StatusOr<std::shared_ptr<Stream>> Create(const Plan& first, const Plan& layout,
                                                        const StreamOptions& options);
  ~Stream() { Stop(absl::CancelledError("the pipeline is gone")); }

  // As Executor::Start(); once.
  absl::Status Start();
  // Ends production; consumers get `reason` after the batches that were ready, unless the stream
  // had ended before. What hangs in a read is left behind, with the ring and all else that it uses.
  void Stop(const absl::Status& reason);

  // As those of the executor.
  uint64_t Hold();
  void Release();
  bool KnowsEnd() const;
  absl::Status SetWorkers(int workers);
  void SetReadAhead(const std::map<std::string, int64_t>& bytes);
  // The pass of the outermost `repeat` that has been begun, or that the last phase goes on with;
  // nullopt where that is not known before it begins, as it leaves steps out or seeks. REQUIRES:
  // held.
  std::optional<uint64_t> pass() const;
  bool StartTrace();
  WorkSpans StopTrace();
  // Another phase behind the last one. REQUIRES: held, and its first step is at least what Hold()
  // returned, or unknown and its pass more than pass().
  void AddPhase(Phase phase);
  // Whether it has met the beginning of the pass that its last phase waits for, told or not.
  // REQUIRES: held.
  bool HasFoundPass() const;
  // The opposite of AddPhase(). REQUIRES: held, and the last phase has not been begun: its first
  // step is more than what Hold() returned, or unknown and HasFoundPass() false.
  void DropLastPhase();

  // Of a stream that a rank alone reads, which has left: whether its place in the shared stream is
  // still to be given up. Once: it may be another one's later, while this one still holds batches.
  bool GiveUpPlace() { return !gave_up_place_.exchange(true); }

  uint64_t ordinal() const { return ordinal_; }
  // A guest reads it at steps that the pipeline has not handed out, as its cursor is that of
  // another run: no step of it counts as the pipeline's, and the next change of bytes ends it.
  bool is_apart() const { return is_apart_; }
  ring::Writer& writer() const { return sink_->writer(); }
  const Placement& placement() const { return *placement_; }
  // The part of the ring that lies on a device; null where none does.
  const DeviceRing* device() const {
    return device_sink_ == nullptr ? nullptr : &device_sink_->device();
  }
  // How it ended by itself; nullopt while it goes on.
  std::optional<absl::Status> outcome() const { return sink_->outcome(); }
  // Nothing after Stop(). Of all phases; the stages' names are those of the present one.
  std::optional<ExecutorStats> Snapshot() const;
  std::vector<SkippedRecord> Skipped() const;
  // None after Stop().
  // Where the stream began.
  uint64_t first_step() const { return first_step_; }
  std::vector<WorkerPulse> Pulses() const;
  // As that of the executor.
  void EndAtHungRead();

 private:
  Stream(std::shared_ptr<RingSink> sink, std::shared_ptr<Placement> placement,
         const StreamOptions& options)
      : name_(options.name),
        ordinal_(options.ordinal),
        is_apart_(options.is_apart),
        worker_nice_(options.worker_nice),
        split_log_(options.split_log),
        memory_(options.memory),
        prefixes_(options.prefixes),
        maps_(options.maps),
        helpers_(options.helpers),
        work_memory_(options.work_memory),
        sink_(std::move(sink)),
        placement_(std::move(placement)),
        workers_(options.workers),
        holds_(options.holds),
        phases_(options.phases),
        read_ahead_(options.read_ahead),
        first_step_(options.start.step),
        epoch_known_(options.epoch_known),
        epoch_begins_(options.epoch_begins),
        read_deadline_(options.read_deadline) {}
  absl::StatusOr<std::unique_ptr<Executor>> MakeExecutor(const Phase& phase, ResumePoint start,
                                                         bool begins);
  // Has the executor end where the next phase begins. REQUIRES: mutex_.
  void LimitIt();
  void Advance();
  void ChangePhase();
  // Where the next phase waits for any epoch, and the present one has come to the step from which
  // on that may begin: which epoch it is is known now, told, and the present phase goes on up to
  // it. Whether that was so, or the phase that waited was withdrawn.
  bool FindEpoch();
  // Calls `tell` until it says yes; false when the stream ends first.
  bool Tell(const std::function<bool()>& tell);
  // At the limit of a phase whose successor waits for its epoch: it knows its first step now, and
  // that is told. False when the stream ends.
  bool TellEpoch();
  // REQUIRES: mutex_ is not taken.
  Executor* executor() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return executor_.get();
  }
  // False: it is to be left behind.
  bool End(Executor& executor) const;
  void Leave(std::unique_ptr<Executor> executor) const;
  // What the present phase has skipped, but for what those before it had told already: a phase that
  // goes on in the middle of a pass meets that again, which `again` counts. REQUIRES: mutex_, and
  // an executor.
  std::vector<SkippedRecord> SkippedNow(uint64_t* again) const;
  ExecutorStats StatsNow() const;  // REQUIRES: the same
  absl::Status AddDevice(const Plan& plan);
  BatchSink& producers_sink() {
    if (device_sink_ != nullptr) return *device_sink_;
    return *sink_;
  }

  const std::string name_;
  const uint64_t ordinal_;
  const bool is_apart_;
  std::atomic<bool> gave_up_place_{false};
  const int worker_nice_;
  const std::shared_ptr<ring::SplitLog> split_log_;
  const std::shared_ptr<MemoryShare> memory_;  // goes after the ring
  const std::shared_ptr<SharedPrefixes> prefixes_;
  const std::shared_ptr<SharedMaps> maps_;
  const std::shared_ptr<StepLenders> helpers_;        // may be null
  const std::shared_ptr<MemoryAccount> work_memory_;  // may be null
  // Shared with what is left behind.
  const std::shared_ptr<RingSink> sink_;
  const std::shared_ptr<Placement> placement_;  // never null
  std::shared_ptr<DeviceRingSink>
      device_sink_;  // after Create(): constant; it reads the ring's slots

  // Before mutex_ where both are taken: what belongs to an executor holds for its successor, which
  // only its owner exchanges.
  std::mutex change_mutex_;

  mutable std::mutex mutex_;
  std::unique_ptr<Executor> executor_;         // under mutex_; null after Stop()
  bool started_ = false;                       // under mutex_
  bool stopped_ = false;                       // under mutex_
  int workers_;                                // under mutex_
  int holds_;                                  // under mutex_
  std::vector<Phase> phases_;                  // under mutex_; the first is the present one
  ExecutorStats before_;                       // under mutex_: of the executors before this one
  std::vector<SkippedRecord> skipped_before_;  // under mutex_: DamageLog::kMaxListed at most
  std::map<std::string, int64_t> read_ahead_;  // under mutex_

  const uint64_t first_step_;
  const std::function<bool(uint64_t epoch)> epoch_known_;
  const std::function<bool(uint64_t step)> epoch_begins_;
  const ReadDeadline read_deadline_;

  std::mutex limit_mutex_;
  std::condition_variable limit_changed_;
  bool at_limit_ = false;  // under limit_mutex_
  bool ends_ = false;      // under limit_mutex_

  std::thread advancing_;  // of Start() and Stop()
};

}  // namespace penstock
