#include "server/service/pipeline/pipeline_keeper.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/monotonic_clock.h"
#include "spdlog/spdlog.h"

namespace penstock {

PipelineKeeper::PipelineKeeper(const PipelineBasis& basis, const PipelineEvents& events,
                               Timeline timeline)
    : name_(basis.name),
      options_(basis.options),
      events_(events),
      timeline_(std::move(timeline)),
      paused_(basis.options.state.paused),
      slow_policies_(basis.options.state.slow_policies),
      complete_groups_(basis.options.state.complete_groups) {}

void PipelineKeeper::Look(const std::function<void(const Timeline& timeline)>& look) const {
  std::lock_guard<std::mutex> lock(mutex_);
  look(timeline_);
}

v1::PipelineSpec PipelineKeeper::LastSpec() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return timeline_.known().plan->spec();
}

absl::StatusOr<ResumePoint> PipelineKeeper::Read(const std::string& cursor) const {
  if (cursor.empty()) return ResumePoint();
  absl::StatusOr<ResumePoint> point = timeline().Read(cursor, options_.changed_work);
  if (point.ok() && !point->notice.empty()) {
    spdlog::warn("pipeline {}: {}", name_, point->notice);
    std::lock_guard<std::mutex> lock(mutex_);
    notices_.erase(std::remove(notices_.begin(), notices_.end(), point->notice), notices_.end());
    if (notices_.size() == kMaxNotices) notices_.erase(notices_.begin());
    notices_.push_back(point->notice);
  }
  return point;
}

std::vector<std::string> PipelineKeeper::Notices() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::string> notices = timeline_.ChangesOfCode();
  notices.insert(notices.end(), notices_.begin(), notices_.end());
  return notices;
}

KeptState PipelineKeeper::StateWith(const Timeline& timeline) const {
  return {timeline.history(), paused_, slow_policies_, complete_groups_,
          timeline.MeaningsOfPhases()};
}

absl::Status PipelineKeeper::Write(const KeptState& state) const {
  if (options_.write_state == nullptr) return absl::OkStatus();
  if (retired_) return absl::NotFoundError(absl::StrCat("pipeline ", name_, " was deleted"));
  return options_.write_state(state);
}

absl::Status PipelineKeeper::WriteState(const std::function<void(KeptState&)>& change) const {
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state = StateWith(timeline_);
  }
  if (change != nullptr) change(state);
  return Write(state);
}

absl::Status PipelineKeeper::Keep(const std::string& etag, Timeline timeline,
                                  const std::function<void()>& take) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (timeline_.Etag() != etag) {
      return absl::AbortedError(
          "the pipeline was changed meanwhile: the epoch that a change waited for has begun, or is "
          "known now");
    }
    state = StateWith(timeline);
  }
  if (absl::Status status = Write(state); !status.ok()) return status;
  std::lock_guard<std::mutex> lock(mutex_);
  timeline_ = std::move(timeline);
  if (take != nullptr) take();
  return absl::OkStatus();
}

bool PipelineKeeper::KeepEpoch(Timeline timeline, const std::string& what) {
  KeptState state;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    state = StateWith(timeline);
  }
  if (const absl::Status status = Write(state); !status.ok()) {
    if (epoch_unkept_ns_.load() != 0) return false;
    epoch_unkept_ns_ = MonotonicNs();
    const std::string text =
        absl::StrCat(what, " could not be written down, and is tried again: ", status.message());
    spdlog::error("pipeline {}: {}", name_, text);
    events_.Tell(v1::EVENT_KIND_UPDATED, text);
    return false;
  }
  epoch_unkept_ns_ = 0;
  std::lock_guard<std::mutex> lock(mutex_);
  timeline_ = std::move(timeline);
  return true;
}

bool PipelineKeeper::EpochIsKnown(uint64_t epoch) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  Timeline timeline = this->timeline();
  // As in EpochBegins(); or it was withdrawn.
  if (!timeline.waits_for_any_epoch()) return true;
  const std::string from = FromWhere(timeline.history().back());
  timeline.KnowEpoch(epoch);
  const v1::Change change = timeline.history().back();
  if (!KeepEpoch(std::move(timeline),
                 absl::StrCat("the pipeline waits, as that ", from, " is epoch ", epoch)))
    return false;
  spdlog::info("pipeline {}: {} is epoch {}, for which a change waits", name_, from, epoch);
  events_.Tell(v1::EVENT_KIND_UPDATED,
               absl::StrCat(from, " is epoch ", epoch, ", for which a change waits"), {}, &change);
  return true;
}

bool PipelineKeeper::EpochBegins(uint64_t step) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  Timeline timeline = this->timeline();
  // Another stream may have been there first, at the same step.
  if (!timeline.is_waiting()) return true;
  timeline.BeginWaiting(step);
  const v1::Change change = timeline.history().back();
  if (!KeepEpoch(std::move(timeline), absl::StrCat("epoch ", change.epoch(), " waits at step ",
                                                   step, ", as that it begins there")))
    return false;
  spdlog::info("pipeline {}: epoch {} begins at step {}, as it was asked for", name_,
               change.epoch(), step);
  events_.Tell(v1::EVENT_KIND_UPDATED,
               absl::StrCat("epoch ", change.epoch(), " begins at step ", step), {}, &change);
  return true;
}

std::optional<uint64_t> PipelineKeeper::EpochUnkeptNs() const {
  const int64_t since_ns = epoch_unkept_ns_.load();
  if (since_ns == 0) return std::nullopt;
  return static_cast<uint64_t>(MonotonicNs() - since_ns);
}

absl::StatusOr<bool> PipelineKeeper::Pause(bool paused, std::string* notice) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  const bool is_so = this->paused() == paused;
  if (is_so && !unkept_) return false;
  const absl::Status written = WriteState([paused](KeptState& state) { state.paused = paused; });
  unkept_ = !written.ok() && !paused;
  if (!written.ok() && paused) {
    return absl::Status(written.code(),
                        absl::StrCat("the pipeline is not paused, as that could not be "
                                     "written down: ",
                                     written.message()));
  }
  if (unkept_) {
    // A pause that could not be ended because of a full disk would be worse than one that comes
    // back.
    const std::string text = absl::StrCat(
        "it goes on, but would be paused again after a restart of the daemon, as this could not be "
        "written down: ",
        written.message());
    spdlog::warn("pipeline {}: {}", name_, text);
    if (notice != nullptr) *notice = text;
  }
  if (is_so) return false;
  std::lock_guard<std::mutex> lock(mutex_);
  paused_ = paused;
  return true;
}

std::optional<std::pair<ring::SlowPolicy, uint32_t>> PipelineKeeper::SlowPolicyOf(
    const std::string& group) const {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto policy = slow_policies_.find(group);
  if (policy == slow_policies_.end()) return std::nullopt;
  return policy->second;
}

absl::Status PipelineKeeper::SetSlowPolicy(const std::string& group, ring::SlowPolicy slow,
                                           uint32_t lag_ms) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
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
  std::lock_guard<std::mutex> lock(mutex_);
  slow_policies_[group] = {slow, lag_ms};
  return absl::OkStatus();
}

void PipelineKeeper::KeepCompleteGroups(std::set<std::string> groups) {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (complete_groups_ == groups) return;
    complete_groups_ = std::move(groups);
  }
  if (const absl::Status written = WriteState(); !written.ok())
    spdlog::warn("pipeline {}: {}", name_, written.ToString());
}

void PipelineKeeper::KeepState() {
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  const absl::Status status = WriteState();
  if (!status.ok()) spdlog::warn("pipeline {}: {}", name_, status.ToString());
}

void PipelineKeeper::Retire(bool retired) {
  if (options_.split_files != nullptr) options_.split_files->Retire(retired);
  std::lock_guard<std::mutex> journal_lock(journal_mutex_);
  retired_ = retired;
}

}  // namespace penstock
