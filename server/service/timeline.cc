#include "server/service/timeline.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "server/engine/plan_change.h"
#include "server/io/crc32c.h"

namespace penstock {
namespace {

bool SameFingerprint(const v1::Fingerprint& a, const v1::Fingerprint& b) {
  return a.SerializeAsString() == b.SerializeAsString();
}

// The files must be those that the stream began with: a change lists them again.
absl::Status CheckSameFiles(const v1::Fingerprint& a, const v1::Fingerprint& b) {
  if (a.names() == b.names() && a.sizes() == b.sizes() && a.ends() == b.ends() &&
      a.seeds() == b.seeds()) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the files have changed since the pipeline was created, or its seeds differ: a stream cannot "
      "go on in others");
}

}  // namespace

Timeline::Timeline(std::shared_ptr<const Plan> plan, v1::Fingerprint fingerprint) {
  phases_.push_back({0, std::move(plan), std::move(fingerprint), 0, std::nullopt});
}

absl::StatusOr<Timeline::NextPlan> Timeline::Prepare(const v1::Change& change,
                                                     FileSystem& files) const {
  NextPlan next;
  if (change.stage().empty()) return next;
  v1::PipelineSpec spec = last().plan->spec();
  absl::Status status = ReplaceStages(change.stage(), &spec);
  if (!status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const Plan>> plan = MakePlan(spec, files);
  if (!plan.ok()) return plan.status();
  status = CheckPlanChange(*first().plan, *last().plan, **plan);
  if (!status.ok()) return status;
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(**plan);
  if (!fingerprint.ok()) return fingerprint.status();
  status = CheckSameFiles(first().fingerprint, *fingerprint);
  if (!status.ok()) return status;
  next.plan = *std::move(plan);
  next.fingerprint = *std::move(fingerprint);
  return next;
}

absl::Status Timeline::Add(const v1::Change& change, NextPlan next) {
  if (history_.size() >= kMaxChanges) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many changes of one pipeline: limit ", kMaxChanges));
  }
  if (!history_.empty() && change.step() < history_.back().step()) {
    return absl::FailedPreconditionError(
        absl::StrCat("changes come in the order of their steps: the last one holds from step ",
                     history_.back().step(), " on, found step ", change.step()));
  }
  Phase phase = last();
  if (!is_steered() || phase.first_step != change.step()) {
    phase.skip_steps = 0;
    phase.seek.reset();
  }
  phase.first_step = change.step();
  if (change.has_seek_cursor()) {
    absl::StatusOr<ResumePoint> point = Read(change.seek_cursor());
    if (!point.ok()) return point.status();
    phase.seek = std::move(point->position);
    phase.skip_steps = 0;
  }
  if (__builtin_add_overflow(phase.skip_steps, change.skip_steps(), &phase.skip_steps))
    return absl::InvalidArgumentError("skip_steps: more than there can be");
  if (next.plan != nullptr) {
    phase.plan = std::move(next.plan);
    phase.fingerprint = std::move(next.fingerprint);
  }
  history_.push_back(change);
  if (!change.stage().empty() || change.skip_steps() > 0 || change.has_seek_cursor())
    phases_.push_back(std::move(phase));
  return absl::OkStatus();
}

std::string Timeline::Etag() const {
  v1::History all;
  for (const v1::Change& change : history_) *all.add_change() = change;
  const std::string bytes = first().fingerprint.SerializeAsString() + all.SerializeAsString();
  const uint32_t crc = Crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return absl::StrCat(history_.size(), "-", absl::Hex(crc, absl::kZeroPad8));
}

absl::StatusOr<ResumePoint> Timeline::Read(const std::string& cursor,
                                           ChangedWork changed_work) const {
  if (cursor.empty()) return ResumePoint();
  absl::StatusOr<ResumePoint> point = absl::UnknownError("");
  absl::Status status;
  // From the last one on: a phase may have the plan of an earlier one.
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
    point = ReadCursor(cursor, phase->fingerprint, changed_work);
    if (!point.ok()) {
      status = point.status();
      continue;
    }
    // It belongs to the phase that made the step in front of it.
    const std::vector<Phase> made = From(point->step > 0 ? point->step - 1 : 0);
    if (!is_steered() || SameFingerprint(made.front().fingerprint, phase->fingerprint))
      return point;
    status = absl::FailedPreconditionError(
        absl::StrCat("the cursor belongs to a run with another history: that of step ", point->step,
                     " was made by what this one has at other steps"));
  }
  return status;
}

std::vector<Phase> Timeline::From(uint64_t step) const {
  size_t begin = phases_.size() - 1;
  while (begin > 0 && phases_[begin].first_step > step) --begin;
  return {phases_.begin() + static_cast<std::ptrdiff_t>(begin), phases_.end()};
}

}  // namespace penstock
