#include "server/service/pipeline/pipeline_steering.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/on_behalf.h"
#include "server/engine/spec/python_functions.h"
#include "server/service/stream/within_deadline.h"
#include "spdlog/spdlog.h"

namespace penstock {
namespace {

// Of a change, in the log: it may name thousands of files.
constexpr size_t kMostLogged = 2000;

bool ChangesBytes(const v1::Change& change) {
  return !change.stage().empty() || change.skip_steps() > 0 || change.has_seek_cursor() ||
         change.has_world();
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

}  // namespace

absl::Status PipelineSteering::Pause(bool paused, std::string* notice, const Asker& by) {
  // Streams that are made meanwhile would miss it.
  const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
  const absl::StatusOr<bool> changed = keeper_.Pause(paused, notice);
  if (!changed.ok()) return changed.status();
  if (!*changed) return absl::OkStatus();
  for (const auto& stream : streams_.All()) {
    if (paused) {
      stream->Hold();
    } else {
      stream->Release();
    }
  }
  spdlog::info("pipeline {} {}{}", name_, paused ? "paused" : "goes on", by.By());
  events_.Tell(paused ? v1::EVENT_KIND_PAUSED : v1::EVENT_KIND_RESUMED,
               paused ? "it begins no further batch" : "it goes on", by);
  return absl::OkStatus();
}

absl::StatusOr<v1::Change> PipelineSteering::Update(const RequestedChange& requested,
                                                    std::string* notice) {
  std::lock_guard<std::mutex> update_lock(update_mutex_);
  Timeline timeline = keeper_.timeline();
  const std::string etag = timeline.Etag();
  if (!requested.etag.empty() && requested.etag != etag) {
    return absl::AbortedError(absl::StrCat("the pipeline was changed meanwhile: etag expected ",
                                           etag, ", found ", requested.etag));
  }
  if (absl::Status status = CheckWorld(requested); !status.ok()) return status;
  if (absl::Status status = CheckFunctions(requested, timeline); !status.ok()) return status;
  if (requested.withdraw) return Withdraw(requested, std::move(timeline));
  // The processes of a host ask for it one after the other.
  if (requested.change.has_world()) {
    if (const auto made = timeline.FindWorld(requested.change.world(), *requested.step))
      return *made;
  }
  v1::Change change = requested.change;
  absl::Status status = numbers_.Check(change);
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
      basis_.read_deadline(), absl::StrCat("the update of pipeline ", name_),
      [timeline, change, user = basis_.options.owner.uid, &files = basis_.files] {
        const OnBehalf::Scope owner(user);
        return timeline.Prepare(change, files);
      });
  if (!next.ok()) return next.status();

  const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
  status = streams_.EndRest();
  if (!status.ok()) return status;
  const std::vector<std::shared_ptr<Stream>> streams = streams_.Steered();
  if (streams_.shared() == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
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
  const uint32_t slots_before = streams.front()->writer().slots();
  const std::vector<std::shared_ptr<Stream>> all = streams_.All();
  status = numbers_.Apply(change, all);
  // Before any step of it can be seen.
  if (status.ok()) status = keeper_.Keep(etag, timeline, [&] { numbers_.Take(change); });
  if (!status.ok()) {
    numbers_.Undo(change, slots_before, all);
    return status;
  }
  if (ChangesBytes(change)) streams_.EndThoseApart();
  if (change.has_slots()) streams.front()->writer().TryFewerSlots(change.slots() == 0);
  for (const auto& stream : streams) {
    if (ChangesBytes(change)) stream->AddPhase(timeline.last());
  }
  const std::string from = FromWhere(change);
  spdlog::info("pipeline {} changed{} from {} on: {}", name_, requested.by.By(), from,
               change.ShortDebugString().substr(0, kMostLogged));
  events_.Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("from ", from, " on"), requested.by, &change);
  const std::string of_code = timeline.NoticeOfCode(change);
  if (!of_code.empty()) {
    spdlog::warn("pipeline {}: {}", name_, of_code);
    absl::StrAppend(&why_later, why_later.empty() ? "" : "; ", of_code);
  }
  if (notice != nullptr) *notice = std::move(why_later);
  return change;
}

absl::Status PipelineSteering::CheckWorld(const RequestedChange& requested) const {
  if (requested.change.has_world() && !requested.step) {
    return absl::InvalidArgumentError(
        "world: other hosts divide the batches from one step on, the same on all of them; name it "
        "(--at-step N)");
  }
  const Timeline timeline = keeper_.timeline();
  const World world = timeline.last().plan->world();
  // It was, is or will be one of several.
  const bool divides = std::any_of(timeline.history().begin(), timeline.history().end(),
                                   [](const v1::Change& change) { return change.has_world(); });
  if (world.is_alone() && checked_.plan->world().is_alone() && !divides) return absl::OkStatus();
  const std::string hosts =
      absl::StrCat("this pipeline is that of host ", world.host, " of ", world.hosts, ": ");
  if (requested.withdraw) {
    return absl::FailedPreconditionError(
        absl::StrCat(hosts,
                     "what one host withdraws another may have begun; change it back, on all of "
                     "them, from one step on (--at-step)"));
  }
  if (requested.at_next_epoch) {
    return absl::FailedPreconditionError(
        absl::StrCat(hosts,
                     "which epoch is the next one is told by how far a host is; name a step that "
                     "all hosts agree on (--at-step), or end the epoch on all of them and create "
                     "the pipelines anew"));
  }
  if (requested.step || !ChangesBytes(requested.change)) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(hosts,
                   "a change of batches holds from one step on, for all hosts alike; name it "
                   "(--at-step N), far enough ahead that no host has begun it"));
}

absl::Status PipelineSteering::CheckFunctions(const RequestedChange& requested,
                                              const Timeline& timeline) const {
  const uid_t owner = basis_.options.owner.uid;
  if (requested.user && *requested.user == owner) return absl::OkStatus();
  PythonFunctions now, wanted;
  AddPythonFunctions(timeline.last().plan->spec(), &now);
  AddPythonFunctions(requested.change, &wanted);
  if (std::includes(now.begin(), now.end(), wanted.begin(), wanted.end())) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(
      "the update names a Python function that pipeline ", name_, " does not call: its code would ",
      "run as user ", owner, ", whose pipeline it is, so that user alone may change it"));
}

absl::StatusOr<v1::Change> PipelineSteering::Withdraw(const RequestedChange& requested,
                                                      Timeline timeline) {
  const std::string etag = timeline.Etag();
  const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
  if (absl::Status status = streams_.EndRest(); !status.ok()) return status;
  if (streams_.shared() == nullptr) return absl::UnavailableError("the pipeline has not begun yet");
  const Held held(streams_.Steered());
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
  if (absl::Status status = keeper_.Keep(etag, timeline, nullptr); !status.ok()) return status;
  for (const auto& stream : held.streams()) stream->DropLastPhase();
  const std::string from = FromWhere(*change);
  spdlog::info("pipeline {}: the change from {} on was withdrawn{}", name_, from,
               requested.by.By());
  events_.Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("that from ", from, " on was withdrawn"),
               requested.by, &*change);
  return change;
}

std::string PipelineSteering::WhyLater(uint64_t earliest, uint64_t next) const {
  return absl::StrCat("steps in front of step ", earliest, " may have been taken already, ",
                      earliest == high_water_->from_before() ? "before the daemon was started again"
                                                             : "by those who were further on",
                      ": the next that is made is ", next);
}

absl::Status PipelineSteering::PlaceAtEpoch(const RequestedChange& requested,
                                            const Timeline& timeline, const Held& held,
                                            v1::Change* change, std::string* notice) const {
  if (requested.step) {
    return absl::InvalidArgumentError(
        "a change holds from a step on, or from the next epoch on: found both");
  }
  // It is refused for that.
  if (timeline.is_waiting()) return absl::OkStatus();
  const uint64_t next = held.next();
  const uint64_t known_from = std::max(timeline.last_step(), high_water_->first_free());
  std::optional<uint64_t> pass = held.streams().front()->pass();
  if (known_from <= next && pass) {
    // Those who catch up may be ahead.
    for (const auto& stream : held.streams()) pass = std::max(*pass, stream->pass().value_or(0));
    change->set_epoch(*pass + 1);
    change->set_step(0);
    return absl::OkStatus();
  }
  // The first behind what somebody may have had, and behind the first step of a change that has not
  // been begun.
  const uint64_t changed = timeline.last().first_step;
  const uint64_t from = std::max(known_from, std::max(next, changed) + 1);
  change->set_epoch(0);
  change->set_step(from);
  const std::string why =
      from == high_water_->first_free()
          ? WhyLater(from, next)
          : absl::StrCat("a change holds from step ", timeline.last_step(),
                         " on, which has not been made yet: the next that is made is ", next);
  *notice = absl::StrCat("it begins with the first epoch that begins at step ", from,
                         " or later, whose number is known then; ", why);
  spdlog::info("pipeline {}: {}", name_, *notice);
  return absl::OkStatus();
}

absl::Status PipelineSteering::Place(const RequestedChange& requested, const Timeline& timeline,
                                     const Held& held, v1::Change* change,
                                     std::string* notice) const {
  if (requested.at_next_epoch) return PlaceAtEpoch(requested, timeline, held, change, notice);
  const uint64_t next = std::max(held.next(), timeline.last_step());
  // What has no effect on the bytes holds at once.
  const uint64_t earliest =
      ChangesBytes(*change) ? std::max(next, high_water_->first_free()) : next;
  const std::string why = earliest == next ? "" : WhyLater(earliest, held.next());
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

absl::Status PipelineSteering::Tune(const Tuning& wanted, v1::Autotune report) {
  // Whoever has them may wait for files for as long as a disk likes; the next look comes soon.
  const std::unique_lock<std::mutex> update_lock(update_mutex_, std::try_to_lock);
  if (!update_lock) return absl::OkStatus();
  const std::unique_lock<std::mutex> streams_lock = streams_.TryLock();
  if (!streams_lock || streams_.shared() == nullptr) return absl::OkStatus();
  const absl::Status tuned = numbers_.Tune(wanted, std::move(report), streams_.All());
  if (!tuned.ok()) return tuned;
  for (const std::string& what : wanted.told) {
    spdlog::info("pipeline {}: {}", name_, what);
    events_.Tell(v1::EVENT_KIND_TUNED, what);
  }
  return absl::OkStatus();
}

absl::Status PipelineSteering::SetSlowPolicy(const std::string& group, ring::SlowPolicy slow,
                                             uint32_t lag_ms, const Asker& by) {
  // Streams that are made meanwhile would miss it.
  const std::unique_lock<std::mutex> streams_lock = streams_.Lock();
  if (absl::Status status = keeper_.SetSlowPolicy(group, slow, lag_ms); !status.ok()) return status;
  for (const auto& stream : streams_.All()) stream->writer().SetSlowPolicy(group, slow, lag_ms);
  events_.Tell(v1::EVENT_KIND_UPDATED,
               absl::StrCat("group ", group, ": slow consumers are ", Verb(slow)), by);
  return absl::OkStatus();
}

absl::Status PipelineSteering::DropGroup(const std::string& group, const Asker& by) {
  bool found = false;
  for (const auto& stream : streams_.All()) {
    found |=
        stream->writer().DropGroup(group, "DETACHED: its group was ended by the control plane");
  }
  if (!found) return absl::NotFoundError(absl::StrCat("no group ", group, " at pipeline ", name_));
  events_.Tell(v1::EVENT_KIND_UPDATED, absl::StrCat("group ", group, " was ended"), by);
  return absl::OkStatus();
}

}  // namespace penstock
