#include "server/service/pipeline/pipeline_attachments.h"

#include <unistd.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ring/may_take_place.h"
#include "ring/rival.h"
#include "server/service/stream/ring_sink.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr size_t kMaxReplays = 8;
// With those whose consumers have gone, and which are ending: after a moment, or when their workers
// come back from a disk.
constexpr size_t kMaxReplaysAndEnding = 4 * kMaxReplays;
constexpr uint32_t kReplaySlots = 3;
// After a restart the shared stream begins so far behind its first consumer at most, in rings; who
// is further behind is served by itself.
constexpr uint64_t kMaxSpreadRings = 4;

// Whether it is a position's fault that no stream begins there, and not the machine's.
bool IsOfPosition(const absl::Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsFailedPrecondition(status) ||
         absl::IsOutOfRange(status) || absl::IsDataLoss(status);
}

}  // namespace

absl::StatusOr<ring::ConsumerPosition> PipelineAttachments::Complete(
    const ring::ConsumerPosition& position) const {
  ring::ConsumerPosition complete = position;
  if (complete.cursor.empty()) {
    if (!complete.known()) return complete;
    // The beginning has no cursor but that of the pipeline.
    const absl::StatusOr<ResumePoint> start = keeper_.Read(options_.cursor);
    if (start.ok() && start->step == complete.step) complete.cursor = options_.cursor;
    return complete;
  }
  const absl::StatusOr<ResumePoint> point = keeper_.Read(complete.cursor);
  if (!point.ok()) return point.status();
  if (complete.known() && complete.step != point->step) {
    return absl::InvalidArgumentError(
        absl::StrCat("the step is not that of the cursor: ", complete.step, " and ", point->step));
  }
  complete.step = point->step;
  return complete;
}

absl::Status PipelineAttachments::MayHaveDevice(const Stream& stream,
                                                const Newcomer& newcomer) const {
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

bool PipelineAttachments::IsGuest(const Newcomer& newcomer) const {
  return newcomer.uid != options_.owner.uid && newcomer.uid != geteuid() &&
         !newcomer.spec.may_send_away;
}

absl::StatusOr<Attached> PipelineAttachments::AttachTo(std::shared_ptr<Stream> stream,
                                                       const Newcomer& newcomer) {
  if (newcomer.spec.on_device) {
    const absl::Status status = MayHaveDevice(*stream, newcomer);
    if (!status.ok()) return status;
  }
  Attached attached;
  ring::ConsumerSpec spec = newcomer.spec;
  const auto policy = keeper_.SlowPolicyOf(spec.group);
  spec.group_is_told = policy.has_value();
  if (policy) std::tie(spec.slow, spec.lag_ms) = *policy;
  spec.is_guest = IsGuest(newcomer);
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

absl::StatusOr<Attached> PipelineAttachments::Attach(const Newcomer& newcomer) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
  absl::StatusOr<Attached> attached = Enter(newcomer);
  // What stands in front of it was had, perhaps of another daemon or pipeline.
  if (attached.ok()) RaiseFor(*attached);
  if (attached.ok() && newcomer.spec.mode == ring::GroupMode::kRank) KeepCompleteGroups();
  return attached;
}

void PipelineAttachments::RaiseFor(const Attached& attached) const {
  if (!attached.stream->is_apart()) high_water_->Raise(attached.handle.start_step);
}

absl::StatusOr<Attached> PipelineAttachments::Enter(const Newcomer& newcomer) {
  absl::StatusOr<ring::ConsumerPosition> position = Complete(newcomer.position);
  if (!position.ok()) return position.status();
  Newcomer placed = {newcomer.spec, *std::move(position), newcomer.pid, newcomer.uid};
  placed.spec.shares_places = newcomer.uid != options_.owner.uid && newcomer.uid != geteuid();
  placed.spec.is_guest = IsGuest(newcomer);
  if (absl::Status status = streams_.EndRest(); !status.ok()) return status;
  if (absl::Status status = MakeWay(placed.spec); !status.ok()) return status;
  std::shared_ptr<Stream> stream = streams_.shared();
  if (stream == nullptr) {
    const absl::Status failure = streams_.standing().failure;
    return failure.ok() ? absl::UnavailableError("the pipeline has not begun yet") : failure;
  }
  if (!placed.position.known()) return AttachTo(std::move(stream), placed);
  ring::Writer& writer = stream->writer();
  const bool is_ahead = placed.position.step > writer.published();
  const bool is_split = placed.spec.mode == ring::GroupMode::kSplit;
  // Whoever comes next is to find the stream where those left it whose it is: a guest's cursor
  // moves nobody but itself.
  const bool is_alone = !placed.spec.is_guest && streams_.MayMove(writer, placed.spec.group);
  if (placed.spec.is_guest && is_ahead && !is_split) return Replay(placed);
  const bool is_far = is_ahead || (is_split && placed.position.step != writer.floor());
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
  absl::Status status = streams_.Restart(placed.position.cursor);
  // The groups went with the ring that they were in, also where it was made anew in its old place.
  if (options_.split_files != nullptr) options_.split_files->EndAll();
  if (!status.ok()) return status;
  absl::StatusOr<Attached> attached = AttachTo(streams_.shared(), placed);
  status = streams_.shared()->Start();
  if (!status.ok()) return status;
  return attached;
}

absl::Status PipelineAttachments::MakeWay(const ring::ConsumerSpec& spec) const {
  for (const auto& [replay, other] : streams_.Replays()) {
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

absl::StatusOr<Attached> PipelineAttachments::Replay(const Newcomer& newcomer) {
  const std::vector<PipelineStreams::ReplayStream> replays = streams_.Replays();
  const auto num_read = std::count_if(replays.begin(), replays.end(), [](const auto& replay) {
    return !replay.stream->writer().IsDeserted();
  });
  const auto of_user = std::count_if(replays.begin(), replays.end(),
                                     [&newcomer](const PipelineStreams::ReplayStream& replay) {
                                       return replay.spec.uid == newcomer.uid;
                                     });
  if (!ring::MayTakePlace(static_cast<size_t>(num_read),
                          IsGuest(newcomer) ? static_cast<size_t>(of_user) : 0, kMaxReplays) ||
      replays.size() >= kMaxReplaysAndEnding) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "too many consumers are not where the stream is: limit ", kMaxReplays, " (step ",
        newcomer.position.step, ")",
        IsGuest(newcomer) ? "; who may control the pipeline can move it there by seek" : ""));
  }
  if (newcomer.position.cursor.empty() && newcomer.position.step != 0) {
    return absl::OutOfRangeError(absl::StrCat("step ", newcomer.position.step,
                                              " has gone, and without its cursor it cannot be "
                                              "made again"));
  }
  const bool is_apart = IsGuest(newcomer) && newcomer.position.step > high_water_->first_free();
  absl::StatusOr<std::shared_ptr<Stream>> stream =
      streams_.Make(newcomer.position.cursor, std::min(numbers_.slots(), kReplaySlots),
                    {name_, newcomer.uid, newcomer.pid},
                    is_apart ? PipelineStreams::For::kOneApart : PipelineStreams::For::kOne);
  if (!stream.ok()) return stream.status();
  // Of its own ring it is the only reader; a rank's place in the shared one waits for it meanwhile.
  Newcomer alone = newcomer;
  alone.spec = ring::ConsumerSpec();
  alone.spec.group = newcomer.spec.group;
  alone.spec.name = newcomer.spec.name;
  alone.spec.identity = newcomer.spec.identity;
  alone.spec.uid = newcomer.uid;
  alone.spec.may_send_away = newcomer.spec.may_send_away;
  alone.spec.on_device = newcomer.spec.on_device;
  absl::StatusOr<Attached> attached = AttachTo(*stream, alone);
  if (!attached.ok()) return attached;
  attached->is_replay = true;
  if (absl::Status status = streams_.AddReplay(*stream, newcomer.spec); !status.ok()) return status;
  const absl::Status started = (*stream)->Start();
  if (!started.ok()) return started;
  spdlog::info("pipeline {}: process {} is served from step {} on by itself", name_, newcomer.pid,
               newcomer.position.step);
  return attached;
}

bool PipelineAttachments::MayDecide(const Newcomer& placed) const {
  if (placed.spec.mode == ring::GroupMode::kSplit || !placed.position.known()) return false;
  const uint64_t free = high_water_->first_free();
  return !placed.spec.is_guest || free == 0 || placed.position.step <= free;
}

int PipelineAttachments::FindLowest(const std::vector<Newcomer>& placed,
                                    const std::vector<absl::StatusOr<Attached>>& results,
                                    uint64_t highest) const {
  const uint64_t spread = kMaxSpreadRings * numbers_.slots();
  int lowest = -1;
  for (size_t i = 0; i < placed.size(); ++i) {
    const ring::ConsumerPosition& position = placed[i].position;
    if (!MayDecide(placed[i])) continue;
    if (!absl::IsUnknown(results[i].status())) continue;
    const bool may_replay =
        (placed[i].spec.mode == ring::GroupMode::kBroadcast || placed[i].spec.is_guest) &&
        !position.cursor.empty();
    if (may_replay && position.step < highest && highest - position.step > spread) continue;
    const bool is_lower = lowest < 0 || position.step < placed[lowest].position.step;
    // Behind a skip a consumer knows its step alone; of those at one step any cursor will do.
    if (is_lower ||
        (position.step == placed[lowest].position.step && placed[lowest].position.cursor.empty()))
      lowest = static_cast<int>(i);
  }
  return lowest;
}

std::vector<absl::StatusOr<Attached>> PipelineAttachments::StartAgain(
    const std::vector<Newcomer>& newcomers) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
  std::vector<absl::StatusOr<Attached>> results(newcomers.size(), absl::UnknownError(""));
  std::map<std::string, ring::SplitState> splits;
  if (options_.split_files != nullptr) {
    if (!splits_) splits_ = options_.split_files->Load();
    splits = *splits_;
  }

  for (const auto& [group, state] : splits) high_water_->Raise(state.next);
  std::vector<Newcomer> placed = newcomers;
  // Those of guests count where there are no others.
  uint64_t highest = 0, highest_of_guests = 0;
  bool only_guests = true;
  for (size_t i = 0; i < placed.size(); ++i) {
    absl::StatusOr<ring::ConsumerPosition> position = Complete(placed[i].position);
    if (!position.ok()) {
      results[i] = position.status();
      continue;
    }
    results[i] = absl::UnknownError("not tried yet");
    placed[i].position = *std::move(position);
    placed[i].spec.is_guest = IsGuest(placed[i]);
    if (!MayDecide(placed[i])) continue;
    only_guests &= placed[i].spec.is_guest;
    uint64_t& of_kind = placed[i].spec.is_guest ? highest_of_guests : highest;
    of_kind = std::max(of_kind, placed[i].position.step);
  }
  if (only_guests) highest = highest_of_guests;
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
    status = streams_.Restart(start.known() ? start.cursor : options_.cursor);
    // What is wrong with a consumer's position is that one's matter, and the others go on.
    if (status.ok() || !is_consumers || is_splits || !IsOfPosition(status)) break;
    results[lowest] = status;
  }
  if (!status.ok()) {
    spdlog::error("pipeline {} did not come back: {}", name_, status.ToString());
    for (auto& result : results) result = absl::StatusOr<Attached>(status);
    return results;
  }
  const std::shared_ptr<Stream> stream = streams_.shared();
  for (const auto& [group, state] : splits) stream->writer().RestoreSplit(group, state);
  streams_.SetHasRestoredGroups(!splits.empty());
  const uint64_t far = stream->writer().floor() + kMaxSpreadRings * numbers_.slots();
  for (size_t i = 0; i < placed.size(); ++i) {
    if (!absl::IsUnknown(results[i].status())) continue;
    const bool is_far_guest = placed[i].spec.is_guest && placed[i].position.known() &&
                              placed[i].spec.mode != ring::GroupMode::kSplit &&
                              placed[i].position.step > far;
    results[i] = is_far_guest ? absl::OutOfRangeError("it is served by itself")
                              : AttachTo(stream, placed[i]);
  }
  stream->writer().EndRestore(keeper_.complete_groups());
  status = stream->Start();
  if (!status.ok()) {
    spdlog::error("pipeline {} did not come back: {}", name_, status.ToString());
    for (auto& result : results) result = absl::StatusOr<Attached>(status);
    stream->Stop(status);
    streams_.GiveUp(status);
    return results;
  }
  splits_.reset();
  KeepCompleteGroups();
  for (size_t i = 0; i < placed.size(); ++i) {
    if (absl::IsOutOfRange(results[i].status())) results[i] = Replay(placed[i]);
  }
  for (const absl::StatusOr<Attached>& result : results) {
    if (result.ok()) RaiseFor(*result);
  }
  spdlog::info("pipeline {} goes on at step {} with {} consumers", name_,
               stream->writer().published(), placed.size());
  return results;
}

void PipelineAttachments::KeepCompleteGroups() {
  const std::shared_ptr<Stream> stream = streams_.shared();
  if (stream != nullptr) keeper_.KeepCompleteGroups(stream->writer().CompleteGroups());
}

absl::Status PipelineAttachments::Detach(uint32_t id, int32_t pid) {
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& stream : streams_.All()) {
    for (const ring::ConsumerStats& consumer : stream->writer().Consumers()) {
      if (consumer.id == id && (pid == 0 || consumer.pid == pid)) found.push_back(stream);
    }
  }
  if (found.size() > 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("several consumers have the number ", id, ": name the process too"));
  }
  if (found.empty() ||
      !found.front()->writer().Dismiss(id, "DETACHED: it was sent away by the control plane")) {
    return absl::NotFoundError(absl::StrCat("no consumer ", id, " at pipeline ", name_));
  }
  return absl::OkStatus();
}

}  // namespace penstock
