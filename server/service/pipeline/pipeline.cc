#include "server/service/pipeline/pipeline.h"

#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "ring/rival.h"
#include "server/engine/plan/cursor.h"
#include "server/engine/plan/open_seeds.h"
#include "server/service/stream/read_deadline.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr size_t kMaxReplays = 8;
// With those whose consumers have gone, and which are ending: after a moment, or when their workers come back from a disk.
constexpr size_t kMaxReplaysAndEnding = 4 * kMaxReplays;
constexpr uint32_t kReplaySlots = 3;
// After a restart the shared stream begins so far behind its first consumer at most, in rings; who is
// further behind is served by itself.
constexpr uint64_t kMaxSpreadRings = 4;

// Whether it is a position's fault that no stream begins there, and not the machine's.
bool IsOfPosition(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsOutOfRange(status) || absl::IsDataLoss(status);
}

}  // namespace

absl::StatusOr<Pipeline::Prepared> Pipeline::Prepare(const v1::PipelineSpec& spec,
                                                     const PipelineOptions& options,
                                                     FileSystem& files) {
  const MemoryAccount::Scope charged(options.work_memory.get());
  absl::Status status = CheckPipelineName(spec.name());
  if (!status.ok()) return status;
  absl::StatusOr<CheckedPipeline> checked = CheckPipeline(spec, options.defaults, files);
  if (!checked.ok()) return checked.status();
  std::shared_ptr<void> indices = checked->plan->KeepIndices();
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(*checked->plan);
  if (!fingerprint.ok()) return fingerprint.status();
  Timeline timeline(checked->plan, *std::move(fingerprint));
  for (size_t i = 0; i < options.state.history.size(); ++i) {
    const v1::Change& change = options.state.history[i];
    absl::StatusOr<Timeline::NextPlan> next = timeline.Prepare(change, files);
    status = next.ok() ? timeline.Add(change, *std::move(next), Timeline::kMaxKeptChanges)
                       : next.status();
    if (!status.ok()) {
      return absl::Status(status.code(),
                          absl::StrCat("change ", i, " of the history: ", status.message()));
    }
  }
  if (options.state.meanings) {
    status = timeline.CheckMeaningsOfPhases(*options.state.meanings);
    if (!status.ok()) {
      return absl::Status(
          status.code(),
          absl::StrCat(status.message(),
                       "; restart the daemon of the release that this pipeline was made with, or "
                       "delete the pipeline and create it anew, to begin with the new meaning"));
    }
  }
  timeline.BeginBehind(options.cursor, options.changed_work);
  std::shared_ptr<Pipeline> pipeline(
      new Pipeline(*std::move(checked), std::move(timeline), options, files));
  return Prepared{std::move(pipeline), std::move(indices)};
}

absl::StatusOr<std::shared_ptr<Pipeline>> Pipeline::Create(const v1::PipelineSpec& spec,
                                                           const PipelineOptions& options,
                                                           FileSystem& files) {
  absl::StatusOr<Prepared> prepared = Within<Prepared>(
      {ReadDeadlineNs(spec, options.defaults), options.leftovers, options.unwanted},
      absl::StrCat("the creation of pipeline ", spec.name()),
      [spec, options, &files] { return Prepare(spec, options, files); });
  if (!prepared.ok()) return prepared.status();
  const std::shared_ptr<Pipeline> pipeline = std::move(prepared->pipeline);
  if (options.returns) return pipeline;
  absl::StatusOr<std::shared_ptr<Stream>> stream =
      pipeline->MakeStream(options.cursor, pipeline->slots(), options.owner);
  if (absl::IsFailedPrecondition(stream.status()) && !options.cursor.empty()) {
    const absl::Status seeds = CheckSeedsAreGiven(spec, pipeline->spec());
    if (!seeds.ok())
      return absl::FailedPreconditionError(
          absl::StrCat(stream.status().message(), "; ", seeds.message()));
  }
  if (!stream.ok()) return stream.status();
  pipeline->shared_ = *stream;
  absl::Status status = (*stream)->Start();
  if (!status.ok()) return status;
  return pipeline;
}

Pipeline::~Pipeline() { Close(absl::CancelledError("the pipeline is gone")); }

absl::StatusOr<ResumePoint> Pipeline::Read(const std::string& cursor) const {
  if (cursor.empty()) return ResumePoint();
  absl::StatusOr<ResumePoint> point = timeline().Read(cursor, options_.changed_work);
  if (point.ok() && !point->notice.empty()) {
    spdlog::warn("pipeline {}: {}", name_, point->notice);
  }
  return point;
}

absl::StatusOr<ring::ConsumerPosition> Pipeline::Complete(
    const ring::ConsumerPosition& position) const {
  ring::ConsumerPosition complete = position;
  if (complete.cursor.empty()) {
    if (!complete.known()) return complete;
    // The beginning has no cursor but that of the pipeline.
    const absl::StatusOr<ResumePoint> start = Read(options_.cursor);
    if (start.ok() && start->step == complete.step) complete.cursor = options_.cursor;
    return complete;
  }
  const absl::StatusOr<ResumePoint> point = Read(complete.cursor);
  if (!point.ok()) return point.status();
  if (complete.known() && complete.step != point->step) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step is not that of the cursor: ", complete.step, " and ", point->step));
  }
  complete.step = point->step;
  return complete;
}

absl::StatusOr<std::shared_ptr<Stream>> Pipeline::MakeStream(const std::string& cursor,
                                                             uint32_t slots,
                                                             const MemoryOwner& owner,
                                                             bool for_all) {
  StreamOptions options;
  absl::StatusOr<ResumePoint> start = Read(cursor);
  if (!start.ok()) return start.status();
  options.name = name_;
  options.ordinal = ++last_stream_;
  options.slots = slots;
  options.worker_nice = options_.defaults.worker_nice();
  options.numa_node = checked_.numa_node;
  options.misplaced = [this](const std::string& notice) { TellMisplaced(notice); };
  options.start = *std::move(start);
  options.start_cursor = cursor;
  options.split_log = options_.split_files;
  options.high_water = high_water_;
  options.memory = std::make_shared<MemoryShare>(options_.memory, Limited(owner));
  if (for_all) options.prefixes = options_.prefixes;
  options.maps = options_.maps;
  options.work_memory = options_.work_memory;
  options.epoch_begins = [this](uint64_t step) { return EpochBegins(step); };
  options.read_deadline = read_deadline();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    options.phases = timeline_.From(options.start.step);
    options.workers = workers_;
    options.tries_fewer_slots = DepthIsFree();
    options.read_ahead = read_ahead_;
    options.holds = paused_ ? 1 : 0;
  }
  return Stream::Create(*checked_.plan, options);
}

absl::Status Pipeline::Restart(const std::string& cursor) {
  std::shared_ptr<Stream> before;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    before = std::move(shared_);
  }
  has_restored_groups_ = false;
  RestingAt here;
  here.at.cursor = options_.cursor;
  if (before != nullptr) {
    const ring::Writer& writer = before->writer();
    here.at.step = writer.floor();
    if (std::string known = writer.Cursor(here.at.step); !known.empty()) here.at.cursor = known;
    // Its memory is given back first.
    before->Stop(absl::CancelledError("the stream has been moved"));
  }
  const bool was_there = before != nullptr;
  before.reset();
  absl::StatusOr<std::shared_ptr<Stream>> stream = MakeStream(cursor, slots(), options_.owner);
  if (!stream.ok() && was_there) {
    // What is wrong with that position is the matter of who came with it: to all others the pipeline is what it was.
    const absl::Status refused = stream.status();
    stream = MakeStream(here.at.cursor, slots(), options_.owner);
    const absl::Status again = stream.ok() ? (*stream)->Start() : stream.status();
    std::lock_guard<std::mutex> lock(mutex_);
    if (again.ok()) {
      if (!closed_) shared_ = *std::move(stream);
      return refused;
    }
    failure_ = refused;
    // Who comes next may find more memory, or threads.
    if (absl::IsResourceExhausted(again) && !closed_) resting_ = here;
    return refused;
  }
  std::lock_guard<std::mutex> lock(mutex_);
  failure_ = stream.status();
  if (!stream.ok()) return stream.status();
  if (closed_) return absl::NotFoundError(absl::StrCat("pipeline ", name_, " was deleted"));
  shared_ = *std::move(stream);
  return absl::OkStatus();
}

absl::Status Pipeline::MayHaveDevice(const Stream& stream, const Newcomer& newcomer) const {
  if (stream.device() == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("the ring of pipeline ", name_,
                     " is not on a device; put ring { device: 0 } into its spec"));
  }
  // Whoever opens CUDA's handles may write the memory, and so what other trainers read.
  if (newcomer.uid != geteuid()) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the device's memory is given to trainers of penstockd's own user only, since they could "
        "write it: you are user ",
        newcomer.uid, ", the daemon is ", geteuid(), "; without it the ring is yours to read"));
  }
  return absl::OkStatus();
}

absl::StatusOr<Attached> Pipeline::AttachTo(std::shared_ptr<Stream> stream,
                                            const Newcomer& newcomer) {
  if (newcomer.spec.on_device) {
    const absl::Status status = MayHaveDevice(*stream, newcomer);
    if (!status.ok()) return status;
  }
  Attached attached;
  ring::ConsumerSpec spec = newcomer.spec;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto policy = slow_policies_.find(spec.group);
    if (policy != slow_policies_.end()) std::tie(spec.slow, spec.lag_ms) = policy->second;
  }
  const ring::Status status =
      stream->writer().Attach(spec, newcomer.position, newcomer.pid, &attached.handle);
  if (!status.ok()) return FromRing(status);
  if (newcomer.spec.on_device) {
    attached.handle.device_fd = stream->device()->table_fd();
    attached.handle.device_memory_fd = stream->device()->memory_fd();
  }
  attached.stream = std::move(stream);
  return attached;
}

bool Pipeline::MayMove(const ring::Writer& writer, std::string_view group) const {
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    if (!consumer.left || consumer.leases > 0) return false;
  }
  return !writer.HasUnfinishedSplit(group) && (!has_restored_groups_ || writer.IsDeserted());
}

absl::StatusOr<Attached> Pipeline::Attach(const Newcomer& newcomer) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  absl::StatusOr<Attached> attached = Enter(newcomer);
  // What stands in front of it was had, perhaps of another daemon or pipeline.
  if (attached.ok()) high_water_->Raise(attached->handle.start_step);
  if (attached.ok() && newcomer.spec.mode == ring::GroupMode::kRank) KeepCompleteGroups();
  return attached;
}

absl::StatusOr<Attached> Pipeline::Enter(const Newcomer& newcomer) {
  absl::StatusOr<ring::ConsumerPosition> position = Complete(newcomer.position);
  if (!position.ok()) return position.status();
  Newcomer placed = {newcomer.spec, *std::move(position), newcomer.pid, newcomer.uid};
  placed.spec.shares_places = newcomer.uid != options_.owner.uid && newcomer.uid != geteuid();
  if (absl::Status status = EndRest(); !status.ok()) return status;
  if (absl::Status status = MakeWay(placed.spec); !status.ok()) return status;
  std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr) {
    std::lock_guard<std::mutex> lock(mutex_);
    return failure_.ok() ? absl::UnavailableError("the pipeline has not begun yet") : failure_;
  }
  if (!placed.position.known()) return AttachTo(std::move(stream), placed);
  ring::Writer& writer = stream->writer();
  const bool is_alone = MayMove(writer, placed.spec.group);
  const bool is_far =
      placed.position.step > writer.published() ||
      (newcomer.spec.mode == ring::GroupMode::kSplit && placed.position.step != writer.floor());
  if (!is_alone || !is_far) {
    absl::StatusOr<Attached> attached = AttachTo(stream, placed);
    if (attached.ok() || !absl::IsOutOfRange(attached.status())) return attached;
    if (!is_alone) return Replay(placed);
  }
  if (placed.position.cursor.empty() && placed.position.step != 0) {
    return absl::OutOfRangeError(absl::StrCat("step ", placed.position.step,
                                              " has gone, and without its cursor it cannot be "
                                              "made again"));
  }
  spdlog::info("pipeline {}: goes to step {}", name_, placed.position.step);
  stream.reset();
  absl::Status status = Restart(placed.position.cursor);
  // The groups went with the ring that they were in, also where it was made anew in its old place.
  if (options_.split_files != nullptr) options_.split_files->EndAll();
  if (!status.ok()) return status;
  absl::StatusOr<Attached> attached = AttachTo(shared(), placed);
  status = shared()->Start();
  if (!status.ok()) return status;
  return attached;
}

absl::Status Pipeline::MakeWay(const ring::ConsumerSpec& spec) const {
  for (const auto& [replay, other] : Replays()) {
    if (!ring::AreRivals(spec, other)) continue;
    for (const ring::ConsumerStats& consumer : replay->writer().Consumers()) {
      if (consumer.detached || consumer.left) continue;
      if (const ring::Status may = ring::MayReplace(spec, other, consumer.pid); !may.ok())
        return FromRing(may);
      replay->writer().Dismiss(consumer.id, ring::kTakenOver);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Attached> Pipeline::Replay(const Newcomer& newcomer) {
  const std::vector<ReplayStream> replays = Replays();
  const auto num_read = std::count_if(
      replays.begin(), replays.end(),
      [](const ReplayStream& replay) { return !replay.stream->writer().IsDeserted(); });
  if (static_cast<size_t>(num_read) >= kMaxReplays || replays.size() >= kMaxReplaysAndEnding) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many consumers are behind the stream: limit ", kMaxReplays, " (step ",
                     newcomer.position.step, ")"));
  }
  if (newcomer.position.cursor.empty() && newcomer.position.step != 0) {
    return absl::OutOfRangeError(absl::StrCat("step ", newcomer.position.step,
                                              " has gone, and without its cursor it cannot be "
                                              "made again"));
  }
  absl::StatusOr<std::shared_ptr<Stream>> stream =
      MakeStream(newcomer.position.cursor, std::min(slots(), kReplaySlots),
                 {name_, newcomer.uid, newcomer.pid}, /*for_all=*/false);
  if (!stream.ok()) return stream.status();
  // Of its own ring it is the only reader; a rank's place in the shared one waits for it meanwhile.
  Newcomer alone = newcomer;
  alone.spec = ring::ConsumerSpec();
  alone.spec.group = newcomer.spec.group;
  alone.spec.name = newcomer.spec.name;
  alone.spec.identity = newcomer.spec.identity;
  alone.spec.on_device = newcomer.spec.on_device;
  absl::StatusOr<Attached> attached = AttachTo(*stream, alone);
  if (!attached.ok()) return attached;
  attached->is_replay = true;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return absl::NotFoundError(absl::StrCat("pipeline ", name_, " was deleted"));
    replays_.emplace_back(*stream, newcomer.spec);
  }
  const absl::Status started = (*stream)->Start();
  if (!started.ok()) return started;
  spdlog::info("pipeline {}: process {} is served from step {} on by itself", name_, newcomer.pid,
               newcomer.position.step);
  return attached;
}

std::vector<Pipeline::ReplayStream> Pipeline::Replays() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ReplayStream> replays;
  for (const auto& [weak, spec] : replays_) {
    if (auto stream = weak.lock()) replays.push_back({std::move(stream), spec});
  }
  return replays;
}

int Pipeline::FindLowest(const std::vector<Newcomer>& placed,
                         const std::vector<absl::StatusOr<Attached>>& results,
                         uint64_t highest) const {
  const uint64_t spread = kMaxSpreadRings * slots();
  int lowest = -1;
  for (size_t i = 0; i < placed.size(); ++i) {
    const ring::ConsumerPosition& position = placed[i].position;
    if (placed[i].spec.mode == ring::GroupMode::kSplit || !position.known()) continue;
    if (!absl::IsUnknown(results[i].status())) continue;
    const bool may_replay =
        placed[i].spec.mode == ring::GroupMode::kBroadcast && !position.cursor.empty();
    if (may_replay && highest - position.step > spread) continue;
    const bool is_lower = lowest < 0 || position.step < placed[lowest].position.step;
    // Behind a skip a consumer knows its step alone; of those at one step any cursor will do.
    if (is_lower ||
        (position.step == placed[lowest].position.step && placed[lowest].position.cursor.empty()))
      lowest = static_cast<int>(i);
  }
  return lowest;
}

std::vector<absl::StatusOr<Attached>> Pipeline::StartAgain(const std::vector<Newcomer>& newcomers) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  std::vector<absl::StatusOr<Attached>> results(newcomers.size(), absl::UnknownError(""));
  std::map<std::string, ring::SplitState> splits;
  if (options_.split_files != nullptr) {
    if (!splits_) splits_ = options_.split_files->Load();
    splits = *splits_;
  }

  std::vector<Newcomer> placed = newcomers;
  uint64_t highest = 0;
  for (size_t i = 0; i < placed.size(); ++i) {
    absl::StatusOr<ring::ConsumerPosition> position = Complete(placed[i].position);
    if (!position.ok()) {
      results[i] = position.status();
      continue;
    }
    results[i] = absl::UnknownError("not tried yet");
    placed[i].position = *std::move(position);
    if (placed[i].spec.mode == ring::GroupMode::kSplit || !placed[i].position.known()) continue;
    highest = std::max(highest, placed[i].position.step);
  }
  for (const auto& [group, state] : splits) high_water_->Raise(state.next);
  absl::Status status;
  while (true) {
    // The lowest position from which a stream can be made; without any, the beginning.
    const int lowest = FindLowest(placed, results, highest);
    ring::ConsumerPosition start;
    if (lowest >= 0) start = placed[lowest].position;
    if (start.known() && start.step > 0 && start.cursor.empty()) start.cursor = options_.cursor;
    const bool is_consumers = lowest >= 0 && start.cursor == placed[lowest].position.cursor;
    bool is_splits = false;
    for (const auto& [group, state] : splits) {
      if (!start.known() || state.first() < start.step) {
        start.step = state.first();
        start.cursor = state.first_cursor();
        is_splits = true;
      }
    }
    status = Restart(start.known() ? start.cursor : options_.cursor);
    // What is wrong with a consumer's position is that one's matter, and the others go on.
    if (status.ok() || !is_consumers || is_splits || !IsOfPosition(status)) break;
    results[lowest] = status;
  }
  if (!status.ok()) {
    spdlog::error("pipeline {} did not come back: {}", name_, status.ToString());
    for (auto& result : results) result = absl::StatusOr<Attached>(status);
    return results;
  }
  const std::shared_ptr<Stream> stream = shared();
  for (const auto& [group, state] : splits) stream->writer().RestoreSplit(group, state);
  has_restored_groups_ = !splits.empty();
  for (size_t i = 0; i < placed.size(); ++i) {
    if (absl::IsUnknown(results[i].status())) results[i] = AttachTo(stream, placed[i]);
  }
  stream->writer().EndRestore(complete_groups());
  status = stream->Start();
  if (!status.ok()) {
    spdlog::error("pipeline {} did not come back: {}", name_, status.ToString());
    for (auto& result : results) result = absl::StatusOr<Attached>(status);
    stream->Stop(status);
    std::lock_guard<std::mutex> lock(mutex_);
    shared_ = nullptr;
    failure_ = status;
    return results;
  }
  splits_.reset();
  KeepCompleteGroups();
  for (size_t i = 0; i < placed.size(); ++i) {
    if (absl::IsOutOfRange(results[i].status())) results[i] = Replay(placed[i]);
  }
  for (const absl::StatusOr<Attached>& result : results) {
    if (result.ok()) high_water_->Raise(result->handle.start_step);
  }
  spdlog::info("pipeline {} goes on at step {} with {} consumers", name_,
               stream->writer().published(), placed.size());
  return results;
}

void Pipeline::TellOfPlaces(const std::vector<ReplayStream>& replays, ring::Writer* shared) {
  for (const auto& [replay, spec] : replays) {
    if (spec.mode != ring::GroupMode::kRank) continue;
    for (const ring::ConsumerStats& consumer : replay->writer().Consumers()) {
      if (consumer.detached) continue;
      if (!consumer.left) {
        shared->KeepPlace(spec.group, spec.place());
      } else if (replay->GiveUpPlace()) {
        shared->LeavePlace(spec.group, spec.place());
      }
    }
  }
}

bool Pipeline::MayBeginLater() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !closed_ && shared_ == nullptr && absl::IsResourceExhausted(failure_);
}

void Pipeline::Tick(uint64_t now_ns, uint64_t rejoin_ns) {
  const std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr) return;
  std::vector<ReplayStream> replays = Replays();
  TellOfPlaces(replays, &stream->writer());
  stream->writer().Tick(now_ns, rejoin_ns);
  if (replays.empty()) return;
  const uint64_t floor = stream->writer().floor();
  const uint64_t published = stream->writer().published();
  const bool nobody_else = MayMove(stream->writer(), "");
  for (const auto& [replay, spec] : replays) {
    for (const ring::ConsumerStats& consumer : replay->writer().Consumers()) {
      // It has met the shared stream, or nobody needs that where it is. A rank may have run past it, which waits for its place.
      const bool meets = floor <= consumer.position &&
                         (spec.mode == ring::GroupMode::kRank || consumer.position <= published);
      if (!consumer.detached && (meets || nobody_else)) {
        replay->writer().SendAway();
      }
    }
  }
  replays.clear();
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(replays_, [](const auto& replay) { return replay.first.expired(); });
}

void Pipeline::LeaveHighWater() {
  if (const absl::Status written = high_water_->WriteLast(); !written.ok()) {
    spdlog::warn(
        "pipeline {}: what was handed out could not be written down: changes of the next daemon "
        "begin behind what was reserved ({})",
        name_, written.ToString());
  }
}

void Pipeline::Close(const absl::Status& reason) {
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    stream = shared_;
  }
  high_water_->Close();
  // The reference stays: late consumers are told the reason.
  if (stream != nullptr) stream->Stop(reason);
  for (const ReplayStream& replay : Replays()) replay.stream->Stop(reason);
}

}  // namespace penstock
