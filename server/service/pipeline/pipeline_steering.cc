// What changes a pipeline while it runs.

#include <algorithm>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "server/engine/spec/stages.h"
#include "server/service/pipeline/pipeline.h"
#include "server/service/watch/event_log.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// Groups that have been told what becomes of slow consumers.
constexpr size_t kMaxPolicies = 64;
constexpr absl::Duration kLook = absl::Milliseconds(5);
// Of a change, in the log: it may name thousands of files.
constexpr size_t kMostLogged = 2000;

bool ChangesBytes(const v1::Change& change) {
  return !change.stage().empty() || change.skip_steps() > 0 || change.has_seek_cursor();
}

const char* Verb(ring::SlowPolicy slow) {
  switch (slow) {
    case ring::SlowPolicy::kBlock:
      return "waited for";
    case ring::SlowPolicy::kDetach:
      return "detached";
    case ring::SlowPolicy::kSkip:
      return "skipped over";
  }
  return "";
}

// It takes no further step, though it may hold some.
bool IsGone(const ring::ConsumerStats& consumer) { return consumer.detached || consumer.left; }

bool IsRead(const ring::Writer& writer) {
  const std::vector<ring::ConsumerStats> consumers = writer.Consumers();
  return !std::all_of(consumers.begin(), consumers.end(), IsGone);
}

// The first step that nobody has taken, where nobody takes any more.
uint64_t NextStep(const ring::Writer& writer) {
  uint64_t next = writer.floor();
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    // A step that was taken and is still held holds the floor.
    if (consumer.mode != ring::GroupMode::kSplit) next = std::max(next, consumer.position);
  }
  return std::min(next, writer.published());
}

// Who has not taken all that was published; "" when everybody has.
std::string WhoIsBehind(const ring::Writer& writer) {
  const uint64_t published = writer.published();
  uint64_t split_leases = 0;
  bool splits = false;
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    if (consumer.detached) continue;
    if (consumer.mode == ring::GroupMode::kSplit) {
      splits |= !consumer.left;
      split_leases += consumer.leases;
    } else if (consumer.left) {
      continue;
    } else if (consumer.position < published) {
      return absl::StrCat("consumer ", consumer.id, " (process ", consumer.pid, ") stands at step ",
                          consumer.position, " of ", published);
    }
  }
  if (splits && split_leases < published - std::min(published, writer.floor()))
    return "a split group has not taken all";
  return "";
}

}  // namespace

// Lets go of streams in whatever way a function is left.
class Held {
 public:
  explicit Held(std::vector<std::shared_ptr<Stream>> streams) : streams_(std::move(streams)) {
    for (const auto& stream : streams_) next_ = std::max(next_, stream->Hold());
  }
  ~Held() {
    for (const auto& stream : streams_) stream->Release();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;

  // The first step that none of them has begun.
  uint64_t next() const { return next_; }
  const std::vector<std::shared_ptr<Stream>>& streams() const { return streams_; }

 private:
  const std::vector<std::shared_ptr<Stream>> streams_;
  uint64_t next_ = 0;
};

std::vector<std::shared_ptr<Stream>> Pipeline::AllStreams() const {
  std::vector<std::shared_ptr<Stream>> streams;
  if (auto stream = shared()) streams.push_back(std::move(stream));
  for (ReplayStream& replay : Replays()) streams.push_back(std::move(replay.stream));
  return streams;
}

std::string Pipeline::etag() const { return timeline().Etag(); }

v1::PipelineSpec Pipeline::LastSpec() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return timeline_.known().plan->spec();
}

std::vector<std::string> Pipeline::StageNames() const { return penstock::StageNames(LastSpec()); }

absl::Status Pipeline::Pause(bool paused, std::string* notice) {
  // Streams that are made meanwhile would miss it.
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  bool is_so;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_so = paused_ == paused;
  }
  if (is_so && !unkept_) return absl::OkStatus();
  const absl::Status written = WriteState([paused](KeptState& state) { state.paused = paused; });
  unkept_ = !written.ok() && !paused;
  if (!written.ok() && paused) {
    return absl::Status(written.code(),
                        absl::StrCat("the pipeline is not paused, as that could not be "
                                     "written down: ",
                                     written.message()));
  }
  if (unkept_) {
    // A pause that could not be ended because of a full disk would be worse than one that comes back.
    const std::string text = absl::StrCat(
        "it goes on, but would be paused again after a restart of the daemon, as this could not be "
        "written down: ",
        written.message());
    spdlog::warn("pipeline {}: {}", name_, text);
    if (notice != nullptr) *notice = text;
  }
  if (is_so) return absl::OkStatus();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    paused_ = paused;
  }
  for (const auto& stream : AllStreams()) {
    if (paused) {
      stream->Hold();
    } else {
      stream->Release();
    }
  }
  spdlog::info("pipeline {} {}", name_, paused ? "paused" : "goes on");
  Tell(paused ? v1::EVENT_KIND_PAUSED : v1::EVENT_KIND_RESUMED,
       paused ? "it begins no further batch" : "it goes on");
  return absl::OkStatus();
}

KeptState Pipeline::StateWith(const Timeline& timeline) const {
  return {timeline.history(), paused_, slow_policies_, complete_groups_,
          timeline.MeaningsOfPhases()};
}

absl::Status Pipeline::WriteState(const std::function<void(KeptState&)>& change) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state = StateWith(timeline_);
  }
  if (change != nullptr) change(state);
  return Write(state);
}

void Pipeline::KeepCompleteGroups() {
  const std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr) return;
  {
    std::set<std::string> groups = stream->writer().CompleteGroups();
    std::lock_guard<std::mutex> lock(mutex_);
    if (complete_groups_ == groups) return;
    complete_groups_ = std::move(groups);
  }
  if (const absl::Status written = WriteState(); !written.ok())
    spdlog::warn("pipeline {}: {}", name_, written.ToString());
}

absl::Status Pipeline::Write(const KeptState& state) const {
  if (options_.write_state == nullptr) return absl::OkStatus();
  if (retired_) return absl::NotFoundError(absl::StrCat("pipeline ", name_, " was deleted"));
  return options_.write_state(state);
}

void Pipeline::Retire(bool retired) {
  if (options_.split_files != nullptr) options_.split_files->Retire(retired);
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  retired_ = retired;
}

void Pipeline::Tell(v1::EventKind kind, std::string text, const v1::Change* change) const {
  if (options_.on_event == nullptr) return;
  v1::Event event = MakeEvent(name_, kind, std::move(text));
  if (change != nullptr) *event.mutable_change() = *change;
  // They may name thousands of files; the history has them.
  if (event.change().has_epoch()) event.mutable_change()->clear_stage();
  options_.on_event(std::move(event));
}

void Pipeline::TellMisplaced(const std::string& notice) {
  {
    std::lock_guard<std::mutex> lock(misplaced_mutex_);
    if (!misplaced_.insert(notice).second || !is_announced_) return;
  }
  AnnounceMisplaced(notice);
}

void Pipeline::AnnounceMisplaced(const std::string& notice) const {
  spdlog::warn("pipeline {}: {}", name_, notice);
  Tell(v1::EVENT_KIND_MISPLACED, notice);
}

void Pipeline::Announce() {
  std::set<std::string> notices;
  {
    std::lock_guard<std::mutex> lock(misplaced_mutex_);
    if (is_announced_) return;
    is_announced_ = true;
    notices = misplaced_;
  }
  for (const std::string& notice : notices) AnnounceMisplaced(notice);
}

absl::StatusOr<DrainedAt> Pipeline::Drain(absl::Duration timeout, const Cancelled& cancelled) {
  if (absl::Status status = Pause(true); !status.ok()) return status;
  const int64_t deadline_ns = MonotonicNs() + absl::ToInt64Nanoseconds(timeout);
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (closed_) {
        return absl::UnavailableError(
            absl::StrCat("pipeline ", name_, " was deleted, or penstockd is stopping"));
      }
      if (resting_) return resting_->at;
    }
    if (cancelled()) return absl::CancelledError("the pipeline is paused; nobody waits for more");
    const std::shared_ptr<Stream> stream = shared();
    if (stream == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
    const ring::Writer& writer = stream->writer();
    const std::vector<ReplayStream> replays = Replays();
    if (!IsRead(writer) && std::none_of(replays.begin(), replays.end(), [](const auto& replay) {
          return IsRead(replay.stream->writer());
        })) {
      const uint64_t step = NextStep(writer);
      return DrainedAt{step, writer.Cursor(step)};
    }
    uint64_t next;
    {
      const Held held({stream});
      next = held.next();
    }
    std::string behind = WhoIsBehind(writer);
    for (const ReplayStream& replay : replays) {
      if (behind.empty()) behind = WhoIsBehind(replay.stream->writer());
    }
    // Steps that were begun are published as slots become free.
    const uint64_t published = writer.published();
    if (behind.empty() && (published == next || stream->outcome()))
      return DrainedAt{published, writer.Cursor(published)};
    if (MonotonicNs() >= deadline_ns) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the pipeline is paused, but not everything was taken in ", absl::FormatDuration(timeout),
          ": ", behind.empty() ? absl::StrCat("step ", published, " is being made") : behind));
    }
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(kLook));
  }
}

absl::StatusOr<v1::Change> Pipeline::Update(const RequestedChange& requested, std::string* notice) {
  std::lock_guard<std::mutex> update_lock(update_mutex_);
  Timeline timeline = this->timeline();
  const std::string etag = timeline.Etag();
  if (!requested.etag.empty() && requested.etag != etag) {
    return absl::AbortedError(absl::StrCat("the pipeline was changed meanwhile: etag expected ",
                                           etag, ", found ", requested.etag));
  }
  if (requested.withdraw) return Withdraw(requested, std::move(timeline));
  v1::Change change = requested.change;
  absl::Status status = CheckNumbers(change);
  if (!status.ok()) return status;
  if (change.has_slots() && checked_.plan->spec().ring().has_device()) {
    return absl::FailedPreconditionError(
        "ring.slots: those of a ring on a device are laid out when it is made; delete the pipeline "
        "and create it with another number");
  }
  if (!ChangesBytes(change) && !change.has_workers() && !change.has_slots() &&
      !change.has_read_ahead_bytes() && !change.has_memory_bytes())
    return absl::InvalidArgumentError("the update changes nothing");
  // Which one it is stands in Place(); the plan is the same.
  if (requested.at_next_epoch) change.set_epoch(1);
  // Before anything is held.
  absl::StatusOr<Timeline::NextPlan> next = Within<Timeline::NextPlan>(
      read_deadline(), absl::StrCat("the update of pipeline ", name_),
      [timeline, change, &files = files_] { return timeline.Prepare(change, files); });
  if (!next.ok()) return next.status();

  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  status = EndRest();
  if (!status.ok()) return status;
  std::vector<std::shared_ptr<Stream>> streams = AllStreams();
  if (shared() == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
  const Held held(streams);
  for (const auto& stream : streams) {
    if (stream->KnowsEnd() || stream->outcome()) {
      return absl::FailedPreconditionError(
          "the stream has ended, but for what is being made: nothing can be changed any more");
    }
  }
  std::string why_later;
  status = Place(requested, timeline, held, &change, &why_later);
  if (!status.ok()) return status;
  if (requested.at_next_epoch) {
    status = timeline.NameFiles(*next, &change);
    if (!status.ok()) return status;
  }
  status = timeline.Add(change, *std::move(next));
  if (!status.ok()) return status;
  // The way back: whoever chose the numbers, and though a limit of memory may change slots that the change does not name.
  ring::Writer& writer = streams.front()->writer();
  const uint32_t slots_before = writer.slots();
  int workers_before;
  std::map<std::string, int64_t> read_ahead_before;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_before = workers_;
    read_ahead_before = read_ahead_;
  }
  status = ApplyNumbers(change, streams);
  // Before any step of it can be seen.
  if (status.ok()) status = Keep(etag, timeline, change);
  if (!status.ok()) {
    if (writer.slots() != slots_before) (void)writer.SetSlots(slots_before);
    for (const auto& stream : streams) {
      if (change.has_read_ahead_bytes()) stream->SetReadAhead(read_ahead_before);
      if (change.has_workers() && workers_before > 0)
        stream->SetWorkers(workers_before).IgnoreError();
    }
    return status;
  }
  if (change.has_slots()) streams.front()->writer().TryFewerSlots(change.slots() == 0);
  for (const auto& stream : streams) {
    if (ChangesBytes(change)) stream->AddPhase(timeline.last());
  }
  const std::string from = FromWhere(change);
  spdlog::info("pipeline {} changed from {} on: {}", name_, from,
               change.ShortDebugString().substr(0, kMostLogged));
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("from ", from, " on"), &change);
  if (notice != nullptr) *notice = std::move(why_later);
  return change;
}

absl::StatusOr<v1::Change> Pipeline::Withdraw(const RequestedChange& requested, Timeline timeline) {
  const std::string etag = timeline.Etag();
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  if (absl::Status status = EndRest(); !status.ok()) return status;
  if (shared() == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
  const Held held(AllStreams());
  for (const auto& stream : held.streams()) {
    if (timeline.is_waiting() && stream->HasFoundPass()) {
      return absl::FailedPreconditionError(
          "no change waits: the epoch that the last one waited for is just being begun");
    }
  }
  absl::StatusOr<v1::Change> change = timeline.Withdraw(
      std::max(held.next(), high_water_->first_free()), requested.change.time_unix_ms());
  if (!change.ok()) return change;
  // Before any step can be seen that it would have made.
  if (absl::Status status = Keep(etag, timeline, v1::Change()); !status.ok()) return status;
  for (const auto& stream : held.streams()) stream->DropLastPhase();
  const std::string from = FromWhere(*change);
  spdlog::info("pipeline {}: the change from {} on was withdrawn", name_, from);
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("that from ", from, " on was withdrawn"), &*change);
  return change;
}

absl::Status Pipeline::Keep(const std::string& etag, Timeline timeline, const v1::Change& change) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (timeline_.Etag() != etag) {
      return absl::AbortedError(
          "the pipeline was changed meanwhile: the epoch that a change waited for has begun");
    }
    state = StateWith(timeline);
  }
  if (absl::Status status = Write(state); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  timeline_ = std::move(timeline);
  TakeNumbers(change);
  return absl::OkStatus();
}

absl::Status Pipeline::PlaceAtEpoch(const RequestedChange& requested, const Timeline& timeline,
                                    const Held& held, v1::Change* change) const {
  if (requested.step) {
    return absl::InvalidArgumentError(
        "a change holds from a step on, or from the next epoch on: found both");
  }
  const uint64_t known_from = std::max(timeline.last_step(), high_water_->first_free());
  if (known_from > held.next()) {
    return absl::FailedPreconditionError(
        timeline.last_step() > held.next()
            ? absl::StrCat("a change waits for step ", timeline.last_step(),
                           ": what holds from an epoch on can be asked for when that step has been "
                           "made")
            : absl::StrCat("steps in front of step ", known_from,
                           " may have been taken already, and which epoch they reach is known when "
                           "they have been made again: ask again as soon as step ",
                           known_from, " is the next one; now that is step ", held.next()));
  }
  std::optional<uint64_t> pass = held.streams().front()->pass();
  if (!pass) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", timeline.last_step(),
                     ", of the change before this one, has not been begun yet, so that its epoch "
                     "is not known: "
                     "try again when it has been made"));
  }
  // Those who catch up may be ahead.
  for (const auto& stream : held.streams()) pass = std::max(*pass, stream->pass().value_or(0));
  change->set_epoch(*pass + 1);
  change->set_step(0);
  return absl::OkStatus();
}

absl::Status Pipeline::Place(const RequestedChange& requested, const Timeline& timeline,
                             const Held& held, v1::Change* change, std::string* notice) const {
  if (requested.at_next_epoch) return PlaceAtEpoch(requested, timeline, held, change);
  const uint64_t next = std::max(held.next(), timeline.last_step());
  // What has no effect on the bytes holds at once.
  const uint64_t earliest =
      ChangesBytes(*change) ? std::max(next, high_water_->first_free()) : next;
  const std::string why =
      earliest == next
          ? ""
          : absl::StrCat("steps in front of step ", earliest, " may have been taken already, ",
                         earliest == high_water_->from_before()
                             ? "before the daemon was started again"
                             : "by those who were further on",
                         ": the next that is made is ", held.next());
  if (requested.step && *requested.step < earliest) {
    return absl::FailedPreconditionError(absl::StrCat(
        "step ", *requested.step, " is being made, or changed, already: the earliest is ", earliest,
        why.empty() ? "" : "; ", why));
  }
  // What waits for its epoch comes behind all others, at a step that is not known.
  change->set_step(timeline.is_waiting() ? earliest : requested.step.value_or(earliest));
  if (!requested.step && !why.empty()) {
    spdlog::info("pipeline {}: {}", name_, why);
    *notice = why;
  }
  return absl::OkStatus();
}

bool Pipeline::EpochBegins(uint64_t step) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  Timeline timeline = this->timeline();
  // Another stream may have been there first, at the same step.
  if (!timeline.is_waiting()) return true;
  timeline.BeginWaiting(step);
  const v1::Change change = timeline.history().back();
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state = StateWith(timeline);
  }
  if (const absl::Status status = Write(state); !status.ok()) {
    if (epoch_unkept_ns_.load() != 0) return false;
    epoch_unkept_ns_ = MonotonicNs();
    const std::string text =
        absl::StrCat("epoch ", change.epoch(), " waits at step ", step,
                     ", as that it begins there could not be written down, and is tried again: ",
                     status.message());
    spdlog::error("pipeline {}: {}", name_, text);
    Tell(v1::EVENT_KIND_UPDATED, text);
    return false;
  }
  epoch_unkept_ns_ = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    timeline_ = timeline;
  }
  spdlog::info("pipeline {}: epoch {} begins at step {}, as it was asked for", name_,
               change.epoch(), step);
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("epoch ", change.epoch(), " begins at step ", step),
       &change);
  return true;
}

void Pipeline::KeepState() {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  const absl::Status status = WriteState();
  if (!status.ok()) spdlog::warn("pipeline {}: {}", name_, status.ToString());
}

absl::Status Pipeline::DetachConsumer(uint32_t id, int32_t pid) {
  std::vector<std::shared_ptr<Stream>> found;
  for (const auto& stream : AllStreams()) {
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

absl::Status Pipeline::SetSlowPolicy(const std::string& group, ring::SlowPolicy slow,
                                     uint32_t lag_ms) {
  // Streams that are made meanwhile would miss it.
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!slow_policies_.contains(group) && slow_policies_.size() >= kMaxPolicies) {
      return absl::ResourceExhaustedError(
          absl::StrCat("too many groups of one pipeline have a policy: limit ", kMaxPolicies));
    }
  }
  const absl::Status written = WriteState([&](KeptState& state) {
    state.slow_policies[group] = {slow, lag_ms};
  });
  if (!written.ok()) {
    return absl::Status(
        written.code(),
        absl::StrCat("group ", group,
                     " is as it was, as a change could not be written down: ", written.message()));
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slow_policies_[group] = {slow, lag_ms};
  }
  for (const auto& stream : AllStreams()) stream->writer().SetSlowPolicy(group, slow, lag_ms);
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("group ", group, ": slow consumers are ", Verb(slow)));
  return absl::OkStatus();
}

}  // namespace penstock
