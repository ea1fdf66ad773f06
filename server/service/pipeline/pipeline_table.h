// The pipelines of a daemon, by name.
//
// Threads:  safe from any thread; creating or deleting one pipeline does not hold up the others.
// Owns:     the pipelines, together with whoever holds a reference.
// Limits:   kMaxPipelines, the last eighth of them for users who have created less than that.
#pragma once

#include <sys/resource.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/stop_flag.h"
#include "io/file/shared_maps.h"
#include "penstock/v1/pipeline.pb.h"
#include "penstock/v1/server.pb.h"
#include "server/engine/run/order_walk.h"
#include "server/service/pipeline/death_notes.h"
#include "server/service/pipeline/pipeline.h"
#include "server/service/pipeline/user_quotas.h"
#include "server/service/pipeline/work_memory.h"
#include "server/service/socket/asker.h"
#include "server/service/socket/task_pool.h"
#include "server/service/state/pipeline_journal.h"
#include "server/service/stream/leftovers.h"
#include "server/service/stream/within_deadline.h"
#include "server/service/watch/event_log.h"

namespace penstock {

class PipelineTable {
 public:
  static constexpr size_t kMaxPipelines = 256;
  static constexpr int kLookUpNice = 15;

  // How long a pipeline is meant to live.
  enum class Life {
    kKept,       // it comes back when the daemon does
    kTemporary,  // it ends with the daemon
  };

  // `files` and `journal` must outlive the table; without a journal nothing comes back.
  PipelineTable(FileSystem& files, v1::WorkerDefaults defaults, PipelineJournal* journal = nullptr)
      : files_(files),
        journal_(journal),
        events_(UnixMs),
        defaults_(std::move(defaults)),
        writes_(journal != nullptr ? std::make_shared<TaskPool>(1) : nullptr) {}
  ~PipelineTable();

  // Why no pipeline can be kept, if there is no thread for it.
  absl::Status status() const { return writes_ == nullptr ? absl::OkStatus() : writes_->status(); }

  // What holds for pipelines that are created from now on.
  void SetDefaults(const v1::WorkerDefaults& defaults);

  // For what is taken from now on.
  void SetMemoryLimits(const v1::MemoryLimits& limits) {
    memory_->SetLimits(limits);
    work_memory_.SetLimits(limits);
  }

  // For what is asked for from now on.
  void SetQuotas(const google::protobuf::RepeatedPtrField<v1::UserQuota>& quotas) {
    quotas_->SetQuotas(quotas);
  }

  // Where pipelines that are created from now on find work that others do too.
  void SetPrefixes(std::shared_ptr<SharedPrefixes> prefixes) { prefixes_ = std::move(prefixes); }
  // Likewise: what maps of their files are taken from; may be null.
  void SetMaps(std::shared_ptr<SharedMaps> maps) { maps_ = std::move(maps); }
  // Who makes some steps of the pipelines; null: nobody else does.
  void SetHelpers(std::shared_ptr<StepLenders> helpers) { helpers_ = std::move(helpers); }
  // What a stream of that spec may take that this daemon runs for another one.
  absl::StatusOr<std::shared_ptr<MemoryAccount>> WorkAccountOf(const v1::PipelineSpec& spec) const {
    if (absl::Status status = work_memory_.Check(spec); !status.ok()) return status;
    return work_memory_.AccountOf(spec, nullptr);
  }
  SharedMaps::Use MapsInUse() const {
    return maps_ == nullptr ? SharedMaps::Use() : maps_->InUse();
  }

  // AlreadyExists when the name is taken, unless by the pipeline that a request of the same id
  // made: then that one, and Unavailable while it is being made. Of `options`, where to begin,
  // whose it is, and the history and id of the request.
  absl::StatusOr<std::shared_ptr<Pipeline>> Create(const v1::PipelineSpec& spec,
                                                   PipelineOptions options,
                                                   Life life = Life::kKept);
  absl::StatusOr<std::shared_ptr<Pipeline>> Create(const v1::PipelineSpec& spec,
                                                   std::string_view cursor = {},
                                                   ChangedWork changed_work = ChangedWork::kRefuse,
                                                   Life life = Life::kKept);
  // --- pipeline_table_returning.cc ---
  // Takes the names of what the journal holds, for BringBack(). Until a pipeline is back it is
  // Unavailable to Find().
  std::vector<std::string> ExpectKept();
  // Reads its files; the pipeline then waits for StartAgain(). Where it cannot be made it stays
  // expected and can be tried again.
  absl::StatusOr<std::shared_ptr<Pipeline>> BringBack(const std::string& name);
  // Those that are expected, and why the last try failed.
  std::map<std::string, absl::Status> Returning() const;

  // Under which pipelines daemons kept dying: from now on those are set aside by ExpectKept(), and
  // not expected. It must outlive the table.
  void SetNotes(DeathNotes* notes) { notes_ = notes; }
  // Those that are set aside, as they are described.
  std::map<std::string, v1::Pipeline> SetAside() const;
  // What brings back a pipeline that is set aside no more, on some other thread; null: nothing
  // does.
  void OnTakenBack(std::function<void(const std::string& name)> bring_back);
  // It is expected again. NotFound where it is not set aside.
  absl::Status TakeBack(const std::string& name, const Asker& by = {});

  // --- pipeline_table.cc ---
  // `unwanted`: says why nobody wants to know any more; may be null. `user`: who asks; without one,
  // no function of anybody's own is good.
  absl::StatusOr<CheckedPipeline> Check(const v1::PipelineSpec& spec,
                                        const Unwanted& unwanted = nullptr, World world = {},
                                        std::optional<uid_t> user = std::nullopt) const;

  // Does what looks something up in a plan, within what a pipeline of that spec may keep, until it
  // is not wanted any more.
  template <typename Result>
  absl::StatusOr<Result> LookUp(
      const v1::PipelineSpec& spec, const Unwanted& unwanted,
      std::function<absl::StatusOr<Result>(const WalkLimits& limits)> look_up) const {
    const std::shared_ptr<MemoryAccount> memory = work_memory_.AccountOf(spec, nullptr);
    return Within<Result>({0, leftovers_, unwanted}, absl::StrCat("a look-up in ", spec.name()),
                          [memory, look_up = std::move(look_up)] {
                            // Behind the workers of pipelines; of this thread alone.
                            setpriority(PRIO_PROCESS, 0, kLookUpNice);
                            const std::atomic<bool>* const stop = StopFlag::OfThisThread();
                            return look_up(WalkLimits{stop, memory.get()});
                          });
  }

  // Whether somebody may hear that there is a pipeline of this name.
  using Visible = std::function<bool(const std::string& name)>;
  // NotFound names those of the pipelines that `visible` lets through; null: all of them.
  // Unavailable: it has not come back yet.
  absl::StatusOr<std::shared_ptr<Pipeline>> Find(const std::string& name,
                                                 const Visible& visible = nullptr) const;
  std::vector<std::shared_ptr<Pipeline>> List() const;
  // `expected`: NotFound where the name is another one's; null: whichever has it.
  absl::Status Delete(const std::string& name, const Visible& visible = nullptr,
                      const Pipeline* expected = nullptr, const Asker& by = {});
  // The user who created it; nullopt where that is not known.
  std::optional<uint32_t> OwnerUid(const std::string& name) const;

  // What happens to them, in their order. Whoever listens goes before the table.
  EventLog& events() const { return events_; }
  // Adds to an event whose the pipeline is, and publishes it.
  void Publish(v1::Event event) const;

  // Looks for reads that take longer than their deadlines, and for what was left behind and has
  // ended. To be called a few times a second.
  void LookForHungReads() const;

  // Ends all pipelines; `reason` is what their consumers get. Create() fails afterwards.
  void Close(const absl::Status& reason);

 private:
  static int64_t UnixMs();
  static v1::Event WithOwner(v1::Event event, uid_t owner);
  static std::string SetAsideMessage(const std::string& name, const std::string& why);
  v1::WorkerDefaults defaults() const;
  // A name that is taken.
  struct Place {
    std::shared_ptr<Pipeline> pipeline = nullptr;  // null while it is created, deleted or expected
    std::shared_ptr<const PipelineJournal::Entry> expected = nullptr;  // null where it is not
    absl::Status failure = absl::OkStatus();  // of the last try to bring it back
    std::string set_aside = {};               // why it is not even tried; "": it is
    std::string request_id = {};              // of the request that took it; "": it had none
    uid_t owner = static_cast<uid_t>(-1);     // who has the place; -1: nobody
    uint64_t turn = 0;  // whoever took the place in another turn has no right to it
  };

  // Makes the pipeline for the place that was taken in this turn, and puts it there.
  absl::StatusOr<std::shared_ptr<Pipeline>> Make(const v1::PipelineSpec& spec,
                                                 PipelineOptions options, Life life, uint64_t turn);
  // An error where the place is not that of the turn any more: the pipeline is nobody's.
  absl::Status Settle(const std::string& name, uint64_t turn,
                      const absl::StatusOr<std::shared_ptr<Pipeline>>& pipeline);
  // REQUIRES: mutex_.
  absl::Status CheckRoomFor(const PipelineOptions& options) const;
  absl::Status NotFound(const std::string& name, const Visible& visible) const;

  FileSystem& files_;
  PipelineJournal* const journal_;
  DeathNotes* notes_ = nullptr;  // constant once there are pipelines
  const std::shared_ptr<Leftovers> leftovers_ = std::make_shared<Leftovers>();
  const std::shared_ptr<MemoryBudget> memory_ = std::make_shared<MemoryBudget>();
  const std::shared_ptr<UserQuotas> quotas_ = std::make_shared<UserQuotas>();
  WorkMemory work_memory_;
  std::shared_ptr<SharedPrefixes> prefixes_;  // constant once there are pipelines
  std::shared_ptr<SharedMaps> maps_;          // likewise
  std::shared_ptr<StepLenders> helpers_;      // likewise
  std::mutex bring_back_mutex_;
  std::function<void(const std::string& name)> bring_back_;  // under bring_back_mutex_
  mutable EventLog events_;
  mutable std::mutex mutex_;
  v1::WorkerDefaults defaults_;          // under mutex_
  std::map<std::string, Place> places_;  // under mutex_
  uint64_t turn_ = 0;                    // under mutex_
  bool closed_ = false;                  // under mutex_
  // Last: its tasks use what stands above. How far pipelines are handed out is written down there;
  // null: nothing is kept.
  const std::shared_ptr<TaskPool> writes_;
};

}  // namespace penstock
