#include "server/service/pipeline/pipeline_streams.h"

#include "absl/strings/str_cat.h"
#include "spdlog/spdlog.h"

namespace penstock {

PipelineStreams::Standing PipelineStreams::standing() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return {shared_, failure_, resting_, closed_};
}

std::vector<PipelineStreams::ReplayStream> PipelineStreams::Replays() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<ReplayStream> replays;
  for (const auto& [weak, spec] : replays_) {
    if (auto stream = weak.lock()) replays.push_back({std::move(stream), spec});
  }
  return replays;
}

std::vector<std::shared_ptr<Stream>> PipelineStreams::All() const {
  std::vector<std::shared_ptr<Stream>> streams;
  if (auto stream = shared()) streams.push_back(std::move(stream));
  for (ReplayStream& replay : Replays()) streams.push_back(std::move(replay.stream));
  return streams;
}

std::optional<absl::Status> PipelineStreams::outcome() const {
  const Standing now = standing();
  if (now.resting && now.resting->finished) return absl::OkStatus();
  if (!now.failure.ok()) return now.failure;
  if (now.shared != nullptr) return now.shared->outcome();
  return std::nullopt;
}

std::vector<std::shared_ptr<Stream>> PipelineStreams::Steered() const {
  std::vector<std::shared_ptr<Stream>> streams = All();
  std::erase_if(streams, [](const auto& stream) { return stream->is_apart(); });
  return streams;
}

void PipelineStreams::EndThoseApart() const {
  for (const auto& stream : All()) {
    if (!stream->is_apart()) continue;
    for (const ring::ConsumerStats& consumer : stream->writer().Consumers()) {
      stream->writer().Dismiss(consumer.id,
                               "DETACHED: the pipeline was changed in front of its step, which had "
                               "not been handed out yet");
    }
  }
}

bool PipelineStreams::MayBeginLater() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return !closed_ && shared_ == nullptr && absl::IsResourceExhausted(failure_);
}

bool PipelineStreams::MayMove(const ring::Writer& writer, std::string_view group) const {
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    if (!consumer.left || consumer.leases > 0) return false;
  }
  return !writer.HasUnfinishedSplit(group) && (!has_restored_groups_ || writer.IsDeserted());
}

absl::StatusOr<std::shared_ptr<Stream>> PipelineStreams::Make(const std::string& cursor,
                                                              uint32_t slots,
                                                              const MemoryOwner& owner, For whom) {
  StreamOptions options;
  absl::StatusOr<ResumePoint> start = keeper_.Read(cursor);
  if (!start.ok()) return start.status();
  options.name = name_;
  options.ordinal = ++last_stream_;
  options.slots = slots;
  options.worker_nice = options_.defaults.worker_nice();
  options.numa_node = basis_.checked.numa_node;
  options.misplaced = [this](const std::string& notice) { events_.TellMisplaced(notice); };
  options.start = *std::move(start);
  options.start_cursor = cursor;
  options.split_log = options_.split_files;
  options.is_apart = whom == For::kOneApart;
  if (!options.is_apart) options.high_water = basis_.high_water;
  options.memory = std::make_shared<MemoryShare>(options_.memory, numbers_.Limited(owner));
  if (whom == For::kAll) {
    options.prefixes = options_.prefixes;
    options.helpers = options_.helpers;
  }
  options.maps = options_.maps;
  options.work_memory = options_.work_memory;
  options.epoch_known = [this](uint64_t epoch) { return keeper_.EpochIsKnown(epoch); };
  options.epoch_begins = [this](uint64_t step) { return keeper_.EpochBegins(step); };
  options.read_deadline = basis_.read_deadline();
  options.phases = keeper_.timeline().From(options.start.step);
  if (options.is_apart && options.phases.size() > 1) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", options.start.step,
        " has not been handed out, and a change of the pipeline waits, in front of it perhaps: "
        "come again when the change has begun"));
  }
  PipelineNumbers::OfStream numbers = numbers_.ForStream();
  options.workers = numbers.workers;
  options.tries_fewer_slots = numbers.tries_fewer_slots;
  options.read_ahead = std::move(numbers.read_ahead);
  options.holds = keeper_.paused() ? 1 : 0;
  return Stream::Create(*basis_.checked.plan, *basis_.checked.layout, options);
}

absl::Status PipelineStreams::Begin(const std::shared_ptr<Stream>& stream) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    shared_ = stream;
  }
  return stream->Start();
}

absl::Status PipelineStreams::Restart(const std::string& cursor) {
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
  absl::StatusOr<std::shared_ptr<Stream>> stream = Make(cursor, numbers_.slots(), options_.owner);
  if (!stream.ok() && was_there) {
    // What is wrong with that position is the matter of who came with it: to all others the
    // pipeline is what it was.
    const absl::Status refused = stream.status();
    stream = Make(here.at.cursor, numbers_.slots(), options_.owner);
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

void PipelineStreams::GiveUp(const absl::Status& status) {
  std::lock_guard<std::mutex> lock(mutex_);
  shared_ = nullptr;
  failure_ = status;
}

absl::Status PipelineStreams::AddReplay(const std::shared_ptr<Stream>& stream,
                                        const ring::ConsumerSpec& spec) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) return absl::NotFoundError(absl::StrCat("pipeline ", name_, " was deleted"));
  replays_.emplace_back(stream, spec);
  return absl::OkStatus();
}

void PipelineStreams::EndAtHungReads() {
  for (const auto& stream : All()) {
    if (stream != nullptr) stream->EndAtHungRead();
  }
}

void PipelineStreams::TellOfPlaces(const std::vector<ReplayStream>& replays, ring::Writer* shared) {
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

void PipelineStreams::Tick(uint64_t now_ns, uint64_t rejoin_ns) {
  const std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr) return;
  std::vector<ReplayStream> replays = Replays();
  TellOfPlaces(replays, &stream->writer());
  stream->writer().SetGuestWait(guest_wait_ns_.load());
  stream->writer().Tick(now_ns, rejoin_ns);
  if (replays.empty()) return;
  const uint64_t floor = stream->writer().floor();
  const uint64_t published = stream->writer().published();
  const bool nobody_else = MayMove(stream->writer(), "");
  for (const auto& [replay, spec] : replays) {
    for (const ring::ConsumerStats& consumer : replay->writer().Consumers()) {
      // It has met the shared stream, or nobody needs that where it is. A rank may have run past
      // it, which waits for its place.
      const bool meets = floor <= consumer.position &&
                         (spec.mode == ring::GroupMode::kRank || consumer.position <= published);
      // A guest does not move it (PipelineAttachments::Enter).
      if (!consumer.detached && (meets || (nobody_else && !spec.is_guest))) {
        replay->writer().SendAway();
      }
    }
  }
  replays.clear();
  std::lock_guard<std::mutex> lock(mutex_);
  std::erase_if(replays_, [](const auto& replay) { return replay.first.expired(); });
}

void PipelineStreams::Close(const absl::Status& reason) {
  std::shared_ptr<Stream> stream;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    stream = shared_;
  }
  basis_.high_water->Close();
  // The reference stays: late consumers are told the reason.
  if (stream != nullptr) stream->Stop(reason);
  for (const ReplayStream& replay : Replays()) replay.stream->Stop(reason);
}

}  // namespace penstock
