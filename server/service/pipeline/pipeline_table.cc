#include "server/service/pipeline/pipeline_table.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/far_file.h"
#include "base/on_behalf.h"
#include "base/signature.h"
#include "ring/may_take_place.h"
#include "ring/memory_limit.h"
#include "server/service/stream/read_deadline.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// What a pipeline of that name reads, counted for it.
FileSystem& CountedFor(const std::string& name, FileSystem& files) {
  auto* const joined = dynamic_cast<JoinedFileSystem*>(&files);
  return joined == nullptr ? files : joined->CountedFor(name);
}

}  // namespace

PipelineTable::~PipelineTable() {
  Close(absl::UnavailableError("penstockd is stopping"));
  // It may use the files and the journal.
  leftovers_->Wait();
}

int64_t PipelineTable::UnixMs() { return absl::ToUnixMillis(absl::Now()); }

void PipelineTable::SetDefaults(const v1::WorkerDefaults& defaults) {
  std::lock_guard<std::mutex> lock(mutex_);
  defaults_ = defaults;
}

v1::WorkerDefaults PipelineTable::defaults() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return defaults_;
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineTable::Create(const v1::PipelineSpec& spec,
                                                                std::string_view cursor,
                                                                ChangedWork changed_work,
                                                                Life life) {
  PipelineOptions options;
  options.cursor = cursor;
  options.changed_work = changed_work;
  return Create(spec, std::move(options), life);
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineTable::Create(const v1::PipelineSpec& spec,
                                                                PipelineOptions options,
                                                                Life life) {
  absl::Status status = CheckPipelineName(spec.name());
  if (!status.ok()) return status;
  options.defaults = defaults();
  uint64_t turn;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return absl::UnavailableError("penstockd is stopping");
    if (const auto found = places_.find(spec.name()); found != places_.end()) {
      const Place& place = found->second;
      if (!options.request_id.empty() && place.request_id == options.request_id) {
        if (place.pipeline != nullptr) return place.pipeline;
        return absl::UnavailableError(absl::StrCat("pipeline ", spec.name(),
                                                   " is being created by an earlier request of the "
                                                   "same request_id; try again"));
      }
      return absl::AlreadyExistsError(absl::StrCat(
          "a pipeline \"", spec.name(), "\" exists",
          !place.set_aside.empty()    ? ", though it is set aside"
          : place.expected != nullptr ? ", though it has not come back yet"
                                      : "",
          "; delete it (penstock delete ", spec.name(), ") or give this one another --name"));
    }
    if (absl::Status room = CheckRoomFor(options); !room.ok()) return room;
    turn = ++turn_;
    Place& place = places_[spec.name()];
    place.request_id = options.request_id;
    place.owner = options.owner.uid;
    place.turn = turn;
  }
  return Make(spec, std::move(options), life, turn);
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineTable::Make(const v1::PipelineSpec& spec,
                                                              PipelineOptions options, Life life,
                                                              uint64_t turn) {
  options.memory = memory_;
  options.quotas = quotas_;
  options.leftovers = leftovers_;
  options.prefixes = prefixes_;
  options.maps = maps_;
  options.helpers = helpers_;
  options.owner.pipeline = spec.name();
  absl::Status may_have = work_memory_.Check(spec);
  if (may_have.ok())
    options.work_memory =
        work_memory_.AccountOf(spec, notes_ == nullptr ? nullptr : notes_->Enter(spec.name()));
  const bool is_kept = journal_ != nullptr && life == Life::kKept;
  if (is_kept) {
    options.split_files = journal_->SplitFilesOf(spec.name(), /*empty=*/!options.returns);
    HighWaterOptions high_water = journal_->HighWaterOf(spec.name(), /*is_new=*/!options.returns);
    high_water.run_later = [writes = std::weak_ptr<TaskPool>(writes_)](std::function<void()> task) {
      const std::shared_ptr<TaskPool> pool = writes.lock();
      return pool != nullptr && pool->Run(std::move(task));
    };
    options.high_water = HighWater::Create(std::move(high_water));
    options.state_path = journal_->PathOf(spec.name());
    options.write_state = [this, name = spec.name(), cursor = options.cursor, world = options.world,
                           fewest_hosts = options.fewest_hosts,
                           changed_work =
                               options.changed_work](const KeptState& state) -> absl::Status {
      // With the seeds that were drawn.
      const auto pipeline = Find(name);
      if (!pipeline.ok()) return pipeline.status();
      return journal_->Put({(*pipeline)->spec(), cursor, changed_work, state.history, state.paused,
                            state.slow_policies, state.complete_groups,
                            state.meanings.value_or(std::vector<v1::Meanings>()), world,
                            fewest_hosts});
    };
  }
  options.on_event = [this, owner = options.owner.uid](v1::Event event) {
    events_.Publish(WithOwner(std::move(event), owner));
  };
  absl::StatusOr<std::shared_ptr<Pipeline>> pipeline =
      may_have.ok() ? Pipeline::Create(spec, options, CountedFor(spec.name(), files_)) : may_have;
  if (pipeline.ok() && is_kept && !options.returns) {
    journal_->PutOwner(spec.name(), options.owner.uid);
    // Before anybody can attach, and so have anything.
    absl::Status status = options.high_water->WriteFirst();
    if (status.ok()) {
      status = journal_->Put({(*pipeline)->spec(), options.cursor, options.changed_work,
                              options.state.history, /*paused=*/false, /*slow_policies=*/{},
                              (*pipeline)->complete_groups(), (*pipeline)->MeaningsOfPhases(),
                              options.world, options.fewest_hosts});
    }
    if (!status.ok()) {
      pipeline = status;
      (void)journal_->Remove(spec.name());
    }
  }
  const absl::Status settled = Settle(spec.name(), turn, pipeline);
  if (!pipeline.ok()) return pipeline.status();
  if (!settled.ok()) {
    // Whoever asked for it is refused, so that it does not come back either.
    if (is_kept && !options.returns) (void)journal_->Remove(spec.name());
    (*pipeline)->Close(settled);
    return settled;
  }
  // A change of the history may have come to its epoch before the pipeline was found by its name.
  if (is_kept && !options.state.history.empty()) (*pipeline)->KeepState();
  spdlog::info("pipeline {} {}{}", spec.name(), options.returns ? "comes back" : "created",
               options.created_by.By());
  v1::Event event = options.returns ? MakeEvent(spec.name(), v1::EVENT_KIND_RETURNED,
                                                "the daemon was started again")
                                    : MakeEvent(spec.name(), v1::EVENT_KIND_CREATED,
                                                absl::StrCat(spec.stage_size(), " stages"));
  if (options.created_by.uid) event.set_uid(*options.created_by.uid);
  events_.Publish(WithOwner(std::move(event), options.owner.uid));
  (*pipeline)->Announce();
  return pipeline;
}

absl::Status PipelineTable::Settle(const std::string& name, uint64_t turn,
                                   const absl::StatusOr<std::shared_ptr<Pipeline>>& pipeline) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return absl::UnavailableError("penstockd is stopping");
  const auto found = places_.find(name);
  if (found == places_.end() || found->second.turn != turn)
    return absl::NotFoundError(absl::StrCat("pipeline ", name, " was deleted"));
  Place& place = found->second;
  if (pipeline.ok()) {
    place.pipeline = *pipeline;
    place.expected = nullptr;
  } else if (place.expected != nullptr) {
    place.failure = pipeline.status();
  } else {
    places_.erase(found);
  }
  return absl::OkStatus();
}

absl::Status PipelineTable::CheckRoomFor(const PipelineOptions& options) const {
  const uid_t user = options.owner.uid;
  size_t of_user = 0;
  for (const auto& [name, place] : places_) of_user += place.owner == user;
  if (absl::Status quota = quotas_->CheckPipelines(user, of_user); !quota.ok()) return quota;
  // The daemon's own user is who it works for.
  const bool shares = user != geteuid();
  const size_t taken = places_.size();
  if (shares ? ring::MayTakePlace(taken, of_user, kMaxPipelines) : taken < kMaxPipelines)
    return absl::OkStatus();
  std::string message = absl::StrCat("too many pipelines: limit ", kMaxPipelines);
  if (taken < kMaxPipelines) {
    absl::StrAppend(&message, ", and the last eighth is for users who have less than that; user ",
                    user, " has ", of_user);
  }
  return absl::ResourceExhaustedError(message);
}

absl::StatusOr<CheckedPipeline> PipelineTable::Check(const v1::PipelineSpec& spec,
                                                     const Unwanted& unwanted, World world,
                                                     std::optional<uid_t> user) const {
  if (absl::Status may_have = work_memory_.Check(spec); !may_have.ok()) return may_have;
  absl::StatusOr<CheckedPipeline> checked =
      Within<CheckedPipeline>({ReadDeadlineNs(spec, defaults()), leftovers_, unwanted},
                              absl::StrCat("the check of pipeline ", spec.name()),
                              [spec, user, world, defaults = defaults(), &files = files_,
                               memory = work_memory_.AccountOf(spec, nullptr)] {
                                std::optional<OnBehalf::Scope> asks;
                                if (user) asks.emplace(*user);
                                const MemoryAccount::Scope charged(memory.get());
                                return CheckPipeline(spec, defaults, files, world);
                              });
  if (!checked.ok()) return checked;
  // Create() would meet the same limit when it makes the ring.
  uint64_t ring_bytes = 0;
  const uint64_t slot_bytes = checked->layout->slot_bytes();
  if (__builtin_mul_overflow(checked->slots, slot_bytes, &ring_bytes)) ring_bytes = UINT64_MAX;
  const ring::Status memory = ring::CheckMemory(
      absl::StrCat("a ring of ", checked->slots, " slots of ", ring::BytesToString(slot_bytes)),
      ring_bytes, ring::ReadUnpromisedMemory());
  if (!memory.ok()) return FromRing(memory);
  return checked;
}

absl::StatusOr<std::shared_ptr<Pipeline>> PipelineTable::Find(const std::string& name,
                                                              const Visible& visible) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = places_.find(name);
  if (found == places_.end()) return NotFound(name, visible);
  const Place& place = found->second;
  if (place.pipeline != nullptr) return place.pipeline;
  if (place.expected == nullptr) return NotFound(name, visible);
  if (!place.set_aside.empty())
    return absl::FailedPreconditionError(SetAsideMessage(name, place.set_aside));
  return absl::UnavailableError(absl::StrCat(
      "pipeline ", name, " has not come back yet since penstockd was started again: ",
      place.failure.ok()
          ? "its files are being read"
          : absl::StrCat("it is tried again, the last time: ", place.failure.message())));
}

absl::Status PipelineTable::NotFound(const std::string& name, const Visible& visible) const {
  std::vector<std::string> known;
  for (const auto& [known_name, place] : places_) {
    if ((place.pipeline != nullptr || place.expected != nullptr) &&
        (visible == nullptr || visible(known_name)))
      known.push_back(known_name);
  }
  return absl::NotFoundError(
      absl::StrCat("no pipeline \"", name.substr(0, 128), "\"", DidYouMean(name, known),
                   known.empty() ? "; there are none: start one with penstock create SPEC"
                                 : absl::StrCat("; there are ", ListNames(known))));
}

std::vector<std::shared_ptr<Pipeline>> PipelineTable::List() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Pipeline>> list;
  for (const auto& [name, place] : places_) {
    if (place.pipeline != nullptr) list.push_back(place.pipeline);
  }
  return list;
}

absl::Status PipelineTable::Delete(const std::string& name, const Visible& visible,
                                   const Pipeline* expected, const Asker& by) {
  Place deleted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = places_.find(name);
    if (found == places_.end() ||
        (found->second.pipeline == nullptr && found->second.expected == nullptr) ||
        (expected != nullptr && found->second.pipeline.get() != expected))
      return NotFound(name, visible);
    // Its name stays taken until it is decided; what a try to bring it back makes meanwhile is
    // nobody's.
    deleted = std::exchange(found->second, {.owner = found->second.owner, .turn = ++turn_});
  }
  // Else what it is told just now would come back, or be another one's of that name.
  if (deleted.pipeline != nullptr) deleted.pipeline->Retire(true);
  const absl::Status removed = journal_ != nullptr ? journal_->Remove(name) : absl::OkStatus();
  if (!removed.ok() && deleted.pipeline != nullptr) deleted.pipeline->Retire(false);
  bool closed;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed = closed_;
    if (removed.ok() || closed) {
      places_.erase(name);
    } else {
      deleted.turn = ++turn_;
      places_[name] = deleted;
    }
  }
  if (!removed.ok()) {
    if (closed && deleted.pipeline != nullptr)
      deleted.pipeline->Close(absl::UnavailableError("penstockd is stopping"));
    return absl::Status(removed.code(),
                        absl::StrCat("the pipeline is not deleted, as it would come back after a "
                                     "restart: ",
                                     removed.message()));
  }
  if (deleted.pipeline != nullptr)
    deleted.pipeline->Close(absl::NotFoundError(absl::StrCat("pipeline ", name, " was deleted")));
  if (notes_ != nullptr) notes_->Forget(name);
  spdlog::info("pipeline {} deleted{}", name, by.By());
  v1::Event event = MakeEvent(name, v1::EVENT_KIND_DELETED, "its consumers get NOT_FOUND");
  if (by.uid) event.set_uid(*by.uid);
  events_.Publish(WithOwner(std::move(event), deleted.owner));
  return absl::OkStatus();
}

v1::Event PipelineTable::WithOwner(v1::Event event, uid_t owner) {
  if (const auto uid = ShownUid(owner)) event.set_owner_uid(*uid);
  return event;
}

std::optional<uint32_t> PipelineTable::OwnerUid(const std::string& name) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto found = places_.find(name);
  return found == places_.end() ? std::nullopt : ShownUid(found->second.owner);
}

void PipelineTable::Publish(v1::Event event) const {
  if (const auto uid = OwnerUid(event.pipeline())) event.set_owner_uid(*uid);
  events_.Publish(std::move(event));
}

void PipelineTable::LookForHungReads() const {
  for (const auto& pipeline : List()) {
    pipeline->EndAtHungReads();
    pipeline->LookAtHighWater();
  }
  leftovers_->Sweep();
}

void PipelineTable::Close(const absl::Status& reason) {
  std::vector<std::shared_ptr<Pipeline>> all;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    for (auto& [name, place] : places_) {
      if (place.pipeline != nullptr) all.push_back(std::move(place.pipeline));
    }
    places_.clear();
  }
  for (const auto& pipeline : all) pipeline->Close(reason);
  // A disk that hangs keeps nobody from being told.
  for (const auto& pipeline : all) pipeline->LeaveHighWater();
}

}  // namespace penstock
