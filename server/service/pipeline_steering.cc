// What changes a pipeline while it runs.

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "server/engine/plan_change.h"
#include "server/service/event_log.h"
#include "server/service/pipeline.h"
#include "server/service/slow_policy.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

constexpr int kMinSlots = 2;
constexpr int kMaxSlots = 64;
constexpr absl::Duration kLook = absl::Milliseconds(5);

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

bool ChangesBytes(const v1::Change& change) {
  return !change.stage().empty() || change.skip_steps() > 0 || change.has_seek_cursor();
}

absl::Status CheckNumbers(const v1::Change& change) {
  if (change.has_slots() && (change.slots() < kMinSlots || change.slots() > kMaxSlots)) {
    return absl::InvalidArgumentError(absl::StrCat("ring.slots out of range: ", change.slots(),
                                                   " is not in [", kMinSlots, ", ", kMaxSlots,
                                                   "]"));
  }
  if (change.has_workers() && change.workers() < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: expected at least 1, found ", change.workers()));
  }
  return absl::OkStatus();
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

const char* ModeName(ring::GroupMode mode) {
  switch (mode) {
    case ring::GroupMode::kBroadcast:
      return "broadcast";
    case ring::GroupMode::kRank:
      return "rank";
    case ring::GroupMode::kSplit:
      return "split";
  }
  return "";
}

// Who has not taken all that was published; "" when everybody has.
std::string WhoIsBehind(const ring::Writer& writer) {
  const uint64_t published = writer.published();
  uint64_t split_leases = 0;
  bool splits = false;
  for (const ring::ConsumerStats& consumer : writer.Consumers()) {
    if (consumer.detached) continue;
    if (consumer.mode == ring::GroupMode::kSplit) {
      splits = true;
      split_leases += consumer.leases;
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

std::vector<std::shared_ptr<Stream>> Pipeline::AllStreams() const {
  std::vector<std::shared_ptr<Stream>> streams = Replays();
  if (auto stream = shared()) streams.insert(streams.begin(), std::move(stream));
  return streams;
}

std::string Pipeline::etag() const { return timeline().Etag(); }

v1::PipelineSpec Pipeline::LastSpec() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return timeline_.last().plan->spec();
}

std::vector<std::string> Pipeline::StageNames() const { return penstock::StageNames(LastSpec()); }

void Pipeline::Pause(bool paused) {
  // Streams that are made meanwhile would miss it.
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (paused_ == paused) return;
    paused_ = paused;
  }
  for (const auto& stream : AllStreams()) {
    if (paused) {
      stream->Hold();
    } else {
      stream->Release();
    }
  }
  WriteState();
  spdlog::info("pipeline {} {}", name_, paused ? "paused" : "goes on");
  Tell(paused ? v1::EVENT_KIND_PAUSED : v1::EVENT_KIND_RESUMED,
       paused ? "it begins no further batch" : "it goes on");
}

void Pipeline::WriteState() {
  if (options_.write_state == nullptr) return;
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state = {timeline_.history(), paused_, slow_policies_};
  }
  // A pause that could not be ended because of a full disk would be worse than one that is forgotten.
  const absl::Status status = options_.write_state(state);
  if (!status.ok()) {
    spdlog::warn("pipeline {}: this will be forgotten when the daemon restarts: {}", name_,
                 status.ToString());
  }
}

void Pipeline::Tell(v1::EventKind kind, std::string text, const v1::Change* change) const {
  if (options_.on_event == nullptr) return;
  v1::Event event = MakeEvent(name_, kind, std::move(text));
  if (change != nullptr) *event.mutable_change() = *change;
  options_.on_event(std::move(event));
}

absl::StatusOr<DrainedAt> Pipeline::Drain(absl::Duration timeout) {
  Pause(true);
  const absl::Time deadline = absl::Now() + timeout;
  while (true) {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (resting_) return resting_->at;
    }
    const std::shared_ptr<Stream> stream = shared();
    if (stream == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
    const ring::Writer& writer = stream->writer();
    if (writer.Consumers().empty() && Replays().empty()) {
      const uint64_t step = writer.floor();
      return DrainedAt{step, writer.Cursor(step)};
    }
    uint64_t next;
    {
      const Held held({stream});
      next = held.next();
    }
    std::string behind = WhoIsBehind(writer);
    for (const auto& replay : Replays()) {
      if (behind.empty()) behind = WhoIsBehind(replay->writer());
    }
    // Steps that were begun are published as slots become free.
    const uint64_t published = writer.published();
    if (behind.empty() && (published == next || stream->outcome()))
      return DrainedAt{published, writer.Cursor(published)};
    if (absl::Now() >= deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "the pipeline is paused, but not everything was taken in ", absl::FormatDuration(timeout),
          ": ", behind.empty() ? absl::StrCat("step ", published, " is being made") : behind));
    }
    std::this_thread::sleep_for(absl::ToChronoNanoseconds(kLook));
  }
}

absl::Status Pipeline::ApplyNumbers(const v1::Change& change,
                                    const std::vector<std::shared_ptr<Stream>>& streams) {
  if (change.has_slots()) {
    // Small rings of those who catch up stay small.
    const ring::Status status =
        streams.front()->writer().SetSlots(static_cast<uint32_t>(change.slots()));
    if (!status.ok()) return FromRing(status);
  }
  if (!change.has_workers()) return absl::OkStatus();
  for (const auto& stream : streams) {
    absl::Status status = stream->SetWorkers(change.workers());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<v1::Change> Pipeline::Update(const RequestedChange& requested) {
  std::lock_guard<std::mutex> update_lock(update_mutex_);
  Timeline timeline = this->timeline();
  if (!requested.etag.empty() && requested.etag != timeline.Etag()) {
    return absl::AbortedError(absl::StrCat("the pipeline was changed meanwhile: etag expected ",
                                           timeline.Etag(), ", found ", requested.etag));
  }
  v1::Change change = requested.change;
  absl::Status status = CheckNumbers(change);
  if (!status.ok()) return status;
  if (change.has_slots() && checked_.plan->spec().ring().has_device()) {
    return absl::FailedPreconditionError(
        "ring.slots: those of a ring on a device are laid out when it is made; delete the pipeline "
        "and create it with another number");
  }
  if (!ChangesBytes(change) && !change.has_workers() && !change.has_slots())
    return absl::InvalidArgumentError("the update changes nothing");
  // Before anything is held.
  absl::StatusOr<Timeline::NextPlan> next = timeline.Prepare(change, files_);
  if (!next.ok()) return next.status();
  const uint64_t last_step = timeline.history().empty() ? 0 : timeline.history().back().step();

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
  const uint64_t earliest = std::max(held.next(), last_step);
  if (requested.step && *requested.step < earliest) {
    return absl::FailedPreconditionError(
        absl::StrCat("step ", *requested.step,
                     " is being made, or changed, already: the earliest is ", earliest));
  }
  change.set_step(requested.step.value_or(earliest));
  status = timeline.Add(change, *std::move(next));
  if (!status.ok()) return status;
  v1::Change back;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (change.has_slots()) back.set_slots(static_cast<int>(slots_));
    if (change.has_workers() && workers_ > 0) back.set_workers(workers_);
  }
  status = ApplyNumbers(change, streams);
  // Before any step of it can be seen.
  if (status.ok() && options_.write_state != nullptr) {
    KeptState state;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      state = {timeline.history(), paused_, slow_policies_};
    }
    status = options_.write_state(state);
  }
  if (!status.ok()) {
    ApplyNumbers(back, streams).IgnoreError();
    return status;
  }
  for (const auto& stream : streams) {
    if (ChangesBytes(change)) stream->AddPhase(timeline.last());
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    timeline_ = std::move(timeline);
    TakeNumbers(change);
  }
  spdlog::info("pipeline {} changed from step {} on: {}", name_, change.step(),
               change.ShortDebugString());
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("from step ", change.step(), " on"), &change);
  return change;
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

void Pipeline::SetSlowPolicy(const std::string& group, ring::SlowPolicy slow, uint32_t lag_ms) {
  // Streams that are made meanwhile would miss it.
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    slow_policies_[group] = {slow, lag_ms};
  }
  for (const auto& stream : AllStreams()) stream->writer().SetSlowPolicy(group, slow, lag_ms);
  WriteState();
  Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("group ", group, ": slow consumers are ", Verb(slow)));
}

v1::ListGroupsResponse Pipeline::Groups() const {
  std::map<std::string, v1::GroupStats> groups;
  for (const auto& stream : AllStreams()) {
    const uint64_t published = stream->writer().published();
    for (const ring::ConsumerStats& consumer : stream->writer().Consumers()) {
      const bool is_first = !groups.contains(consumer.group);
      v1::GroupStats& group = groups[consumer.group];
      group.set_name(consumer.group);
      group.set_leases(group.leases() + consumer.leases);
      group.set_missed(group.missed() + consumer.skipped);
      if (is_first) group.set_first_position(UINT64_MAX);
      // Who catches up by itself is alone in its ring, whatever its group is.
      if (is_first || consumer.mode != ring::GroupMode::kBroadcast) {
        group.set_mode(ModeName(consumer.mode));
        group.set_world_size(consumer.mode == ring::GroupMode::kRank ? consumer.world_size : 0);
      }
      if (consumer.detached) continue;
      group.set_consumers(group.consumers() + 1);
      group.set_first_position(std::min(group.first_position(), consumer.position));
      group.set_last_position(std::max(group.last_position(), consumer.position));
      group.set_lag(std::max(group.lag(), published - std::min(published, consumer.position)));
    }
  }
  v1::ListGroupsResponse response;
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [name, group] : groups) {
    if (group.consumers() == 0) group.set_first_position(0);
    if (const auto policy = slow_policies_.find(name); policy != slow_policies_.end()) {
      group.set_slow(ToProto(policy->second.first));
      group.set_lag_ms(policy->second.second);
    }
    *response.add_groups() = std::move(group);
  }
  return response;
}

bool Pipeline::IsTuned() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return options_.defaults.autotune() && !workers_are_chosen_;
}

absl::Status Pipeline::Tune(int workers, v1::Autotune report) {
  std::lock_guard<std::mutex> update_lock(update_mutex_);
  // An update has named a number meanwhile.
  if (!IsTuned()) return absl::OkStatus();
  bool is_other;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    is_other = report.changes() != autotune_.changes();
    autotune_ = report;
  }
  if (!is_other) return absl::OkStatus();
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  for (const auto& stream : AllStreams()) {
    absl::Status status = stream->SetWorkers(workers);
    if (!status.ok()) return status;
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    workers_ = workers;
  }
  spdlog::info("pipeline {}: workers {}", name_, report.reason());
  Tell(v1::EVENT_KIND_TUNED, absl::StrCat("workers ", report.reason()));
  return absl::OkStatus();
}

absl::StatusOr<WorkSpans> Pipeline::Profile(absl::Duration duration) {
  {
    std::lock_guard<std::mutex> attach_lock(attach_mutex_);
    if (absl::Status status = EndRest(); !status.ok()) return status;
  }
  const std::shared_ptr<Stream> stream = shared();
  if (stream == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
  if (!stream->StartTrace())
    return absl::FailedPreconditionError("a profile of this pipeline is being made already");
  std::this_thread::sleep_for(absl::ToChronoNanoseconds(duration));
  return stream->StopTrace();
}

}  // namespace penstock
