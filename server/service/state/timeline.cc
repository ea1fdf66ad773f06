#include "server/service/state/timeline.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "io/file/crc32c.h"
#include "server/engine/plan/op_meaning.h"
#include "server/engine/plan/pass_change.h"
#include "server/engine/plan/plan_change.h"
#include "server/service/state/text_proto.h"
#include "server/service/state/world_message.h"

namespace penstock {
namespace {

// Whether both are of the same stages and files.
bool SamePlan(v1::Fingerprint a, v1::Fingerprint b) {
  a.clear_moves();
  b.clear_moves();
  return a.SerializeAsString() == b.SerializeAsString();
}

// What a phase does to the elements of its steps, for an error.
std::string DescribeMove(const Phase& phase) {
  const std::string from = absl::StrCat(" from step ", phase.first_step, " on");
  if (phase.pass) return absl::StrCat("epoch ", *phase.pass, " with other stages", from);
  if (phase.seek && phase.skip_steps == 0) return absl::StrCat("another position", from);
  if (phase.skip_steps > 0)
    return absl::StrCat(phase.skip_steps, " steps left out in front of step ", phase.first_step);
  return absl::StrCat("another batch size, or other weights,", from);
}

bool HaveSameFiles(const v1::Fingerprint& a, const v1::Fingerprint& b) {
  return a.names() == b.names() && a.sizes() == b.sizes() && a.ends() == b.ends();
}

// The files must be those that the stream began with: a change lists them again.
absl::Status CheckSameFiles(const v1::Fingerprint& a, const v1::Fingerprint& b) {
  if (HaveSameFiles(a, b) && a.seeds() == b.seeds()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "the files have changed since the pipeline was created, or its seeds differ: a stream cannot "
      "go on in others");
}

// The first change of a history that names the files that the pipeline began with.
bool IsOfTheBeginning(const v1::Change& change) {
  return change.has_epoch() && change.epoch() == 0 && change.step() == 0;
}

bool ChangesBytes(const v1::Change& change) {
  return !change.stage().empty() || change.skip_steps() > 0 || change.has_seek_cursor() ||
         change.has_world();
}

bool ChangesNumbers(const v1::Change& change) {
  return change.has_workers() || change.has_slots() || change.has_read_ahead_bytes() ||
         change.has_memory_bytes();
}

bool IsWithdrawn(const v1::Change& change) { return change.has_withdrawn_unix_ms(); }

// A change of hosts is one of nothing else: another host would not know what came with it.
absl::Status CheckDividesAlone(const v1::Change& change) {
  if (!change.has_world() || (change.stage().empty() && change.skip_steps() == 0 &&
                              !change.has_seek_cursor() && !change.has_epoch()))
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a change of the hosts that divide the batches changes nothing else");
}

std::string OtherCodeFrom(const std::string& where) {
  return absl::StrCat("from ", where,
                      " on the code of its Python functions is another one than before");
}

absl::Status CheckEpochChange(const v1::Change& change) {
  if (!change.stage().empty() && change.skip_steps() == 0 && !change.has_seek_cursor())
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      "a change that holds from an epoch on names all stages, and neither leaves steps out nor "
      "seeks");
}

}  // namespace

bool WaitsForAnyEpoch(const v1::Change& change) {
  return change.has_epoch() && change.epoch() == 0 && change.step() > 0;
}

std::string FromWhere(const v1::Change& change) {
  if (WaitsForAnyEpoch(change))
    return absl::StrCat("the first epoch behind step ", change.step() - 1);
  return change.step() == 0 && change.has_epoch() ? absl::StrCat("epoch ", change.epoch())
                                                  : absl::StrCat("step ", change.step());
}

bool Phase::IsMove() const {
  return skip_steps > 0 || seek || pass || (order_before && OrderKey(fingerprint) != *order_before);
}

void Phase::BeginAt(uint64_t step, const Phase& last) {
  first_step = step;
  if (step > last.first_step) {
    moves_before = last.fingerprint.moves();
    order_before = OrderKey(last.fingerprint);
  } else {
    moves_before = last.moves_before;
    order_before = last.order_before;
  }
  fingerprint.set_moves(IsMove()
                            ? MovesBehind(moves_before, step, OrderKey(fingerprint), skip_steps,
                                          seek ? &*seek : nullptr, pass ? &*pass : nullptr)
                            : moves_before);
}

Timeline::Timeline(std::shared_ptr<const Plan> plan, v1::Fingerprint fingerprint,
                   std::shared_ptr<const Plan> layout)
    : layout_(layout != nullptr ? std::move(layout) : plan) {
  phases_.push_back({0, std::move(plan), std::move(fingerprint), 0, std::nullopt, std::nullopt});
}

absl::StatusOr<Timeline::NextPlan> Timeline::Prepare(const v1::Change& change,
                                                     FileSystem& files) const {
  NextPlan next;
  if (change.has_withdrawn_unix_ms()) return next;
  if (change.has_epoch()) {
    if (absl::Status status = CheckEpochChange(change); !status.ok()) return status;
  }
  if (change.stage().empty() && !change.has_world()) return next;
  v1::PipelineSpec spec = last().plan->spec();
  absl::Status status = CheckDividesAlone(change);
  if (!status.ok()) return status;
  if (change.has_epoch()) {
    *spec.mutable_stage() = change.stage();
    KeepSeedsOf(last().plan->spec(), &spec);
  } else {
    status = ReplaceStages(change.stage(), &spec);
  }
  if (!status.ok()) return status;
  absl::StatusOr<std::shared_ptr<const Plan>> plan =
      MakePlan(spec, files, change.has_world() ? WorldIn(change) : last().plan->world());
  if (!plan.ok()) return plan.status();
  if (IsOfTheBeginning(change) || change.has_world()) {
    status = CheckSameElement(*layout_, **plan);
  } else if (change.has_epoch()) {
    status = CheckPassChange(*layout_, *last().plan, **plan);
  } else {
    status = CheckPlanChange(*layout_, *last().plan, **plan);
  }
  if (!status.ok()) return status;
  absl::StatusOr<v1::Fingerprint> fingerprint = FingerprintOf(**plan);
  if (!fingerprint.ok()) return fingerprint.status();
  if (!change.has_epoch()) status = CheckSameFiles(last().fingerprint, *fingerprint);
  if (!status.ok()) return status;
  next.plan = *std::move(plan);
  next.fingerprint = *std::move(fingerprint);
  return next;
}

absl::Status Timeline::Add(const v1::Change& change, NextPlan next, size_t limit) {
  if (history_.size() >= limit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("too many changes of one pipeline: limit ", limit,
                     "; create it anew from its cursor, with the spec that it has come to"));
  }
  if (change.has_withdrawn_unix_ms()) {
    history_.push_back(change);
    return absl::OkStatus();
  }
  if (IsOfTheBeginning(change)) {
    if (!history_.empty() || next.plan == nullptr) {
      return absl::InvalidArgumentError(
          "a change that names the files of the beginning is the first one of a history");
    }
    phases_.front().only_divides = false;
    phases_.front().plan = std::move(next.plan);
    phases_.front().fingerprint = std::move(next.fingerprint);
    history_.push_back(change);
    return absl::OkStatus();
  }
  if (is_waiting() && (ChangesBytes(change) || change.has_epoch())) {
    return absl::FailedPreconditionError(absl::StrCat(
        "a change waits for the beginning of ", FromWhere(history_.back()),
        "; until then only numbers can be changed that have no effect on the batches"));
  }
  const bool any_epoch = WaitsForAnyEpoch(change);
  const bool waits = change.has_epoch() && (change.step() == 0 || any_epoch);
  // The step in front of it, which tells the epoch, is one of the phase before it.
  const bool is_late = !any_epoch || change.step() > last().first_step;
  if ((!waits || any_epoch) && (change.step() < last_step() || !is_late)) {
    return absl::FailedPreconditionError(
        absl::StrCat("changes come in the order of their steps: the last one holds from step ",
                     last_step(), " on, found step ", change.step()));
  }
  if (!ChangesBytes(change)) {
    history_.insert(is_waiting() ? history_.end() - 1 : history_.end(), change);
    return absl::OkStatus();
  }
  Phase phase = last();
  phase.only_divides = phase.only_divides && change.has_world();
  if (!is_steered() || phase.first_step != change.step()) {
    phase.skip_steps = 0;
    phase.seek.reset();
    phase.pass.reset();
  }
  if (any_epoch) {
    if (absl::Status status = CheckHasPassesOf(*phase.plan, *next.plan); !status.ok())
      return status;
    phase.any_pass_from = change.step();
  } else if (change.has_epoch()) {
    if (absl::Status status = CheckHasPass(*next.plan, change.epoch()); !status.ok()) return status;
    phase.pass = change.epoch();
  }
  if (change.has_seek_cursor()) {
    absl::StatusOr<Position> position = ReadSeek(change.seek_cursor());
    if (!position.ok()) return position.status();
    phase.seek = *std::move(position);
    phase.pass.reset();
    phase.skip_steps = 0;
  }
  if (__builtin_add_overflow(phase.skip_steps, change.skip_steps(), &phase.skip_steps))
    return absl::InvalidArgumentError("skip_steps: more than there can be");
  if (next.plan != nullptr) {
    phase.plan = std::move(next.plan);
    phase.fingerprint = std::move(next.fingerprint);
  }
  if (waits) {
    phase.first_step = kUnknownStep;
  } else {
    phase.BeginAt(change.step(), last());
  }
  history_.push_back(change);
  phases_.push_back(std::move(phase));
  return absl::OkStatus();
}

absl::StatusOr<v1::Change> Timeline::Withdraw(uint64_t next, int64_t time_unix_ms) {
  if (!is_steered()) {
    return absl::FailedPreconditionError(
        "no change waits: nothing was changed that has an effect on the batches");
  }
  if (!is_waiting() && last().first_step <= next) {
    return absl::FailedPreconditionError(
        absl::StrCat("no change waits: the last one holds from step ", last().first_step,
                     " on, and every step in front of it has been begun; the next one is ", next));
  }
  size_t index = history_.size() - 1;
  while (IsWithdrawn(history_[index]) || !ChangesBytes(history_[index])) --index;
  v1::Change numbers = history_[index];
  v1::Change& withdrawn = history_[index];
  withdrawn.set_withdrawn_unix_ms(time_unix_ms);
  withdrawn.clear_workers();
  withdrawn.clear_slots();
  withdrawn.clear_read_ahead_bytes();
  withdrawn.clear_memory_bytes();
  const v1::Change result = withdrawn;
  phases_.pop_back();
  // What came behind it without an effect on the batches need not wait for its step.
  const uint64_t step = std::max(next, last_step_before(index));
  for (size_t i = index + 1; i < history_.size(); ++i) {
    if (!IsWithdrawn(history_[i])) history_[i].set_step(std::min(history_[i].step(), step));
  }
  if (!ChangesNumbers(numbers)) return result;
  numbers.clear_stage();
  numbers.clear_skip_steps();
  numbers.clear_seek_cursor();
  numbers.clear_epoch();
  numbers.clear_world();
  numbers.set_step(step);
  history_.insert(history_.begin() + static_cast<std::ptrdiff_t>(index), std::move(numbers));
  return result;
}

void Timeline::KnowEpoch(uint64_t epoch) {
  phases_.back().any_pass_from.reset();
  phases_.back().pass = epoch;
  history_.back().set_epoch(epoch);
  history_.back().set_step(0);
}

void Timeline::BeginWaiting(uint64_t step) {
  phases_.back().BeginAt(step, known());
  history_.back().set_step(step);
}

absl::Status Timeline::NameFiles(const NextPlan& next, v1::Change* change) {
  *change->mutable_stage() = next.plan->spec().stage();
  v1::Change named, beginning;
  *named.mutable_stage() = StagesWithFiles(*next.plan);
  beginning.set_epoch(0);
  *beginning.mutable_stage() = StagesWithFiles(*first().plan);
  const size_t bytes = std::max(named.ByteSizeLong(), beginning.ByteSizeLong());
  absl::Status status = CheckText(named);
  if (status.ok()) status = CheckText(beginning);
  if (bytes > kMaxNamedBytes) {
    status = absl::ResourceExhaustedError(absl::StrCat(
        "other files, which the history has to name one by one, are too many for it: ", bytes,
        " > ", kMaxNamedBytes, " bytes of stages; create a pipeline for them"));
  }
  if (!status.ok()) {
    return HaveSameFiles(last().fingerprint, next.fingerprint) ? absl::OkStatus() : status;
  }
  *change->mutable_stage() = named.stage();
  for (const v1::Change& one : history_) {
    if (one.has_epoch()) return absl::OkStatus();
  }
  v1::Change as_it_was;
  as_it_was.set_epoch(0);
  *as_it_was.mutable_stage() = first().plan->spec().stage();
  // Without a glob they are named already.
  if (as_it_was.SerializeAsString() != beginning.SerializeAsString())
    history_.insert(history_.begin(), std::move(beginning));
  return absl::OkStatus();
}

uint64_t Timeline::last_step() const {
  return last_step_before(history_.size() - (is_waiting() ? 1 : 0));
}

uint64_t Timeline::last_step_before(size_t index) const {
  while (index > 0 && IsWithdrawn(history_[index - 1])) --index;
  return index == 0 ? 0 : history_[index - 1].step();
}

std::string Timeline::Etag() const {
  v1::History all;
  for (const v1::Change& change : history_) *all.add_change() = change;
  const std::string bytes = first().fingerprint.SerializeAsString() + all.SerializeAsString();
  const uint32_t crc = Crc32c(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  return absl::StrCat(history_.size(), "-", absl::Hex(crc, absl::kZeroPad8));
}

std::vector<v1::Meanings> Timeline::MeaningsOfPhases() const {
  std::vector<v1::Meanings> meanings;
  for (const Phase& phase : phases_) meanings.push_back(InShort(phase.fingerprint.meanings()));
  return meanings;
}

absl::Status Timeline::CheckMeaningsOfPhases(const std::vector<v1::Meanings>& kept) const {
  for (size_t i = 0; i < phases_.size(); ++i) {
    const absl::Status status = CheckMeanings(i < kept.size() ? kept[i] : v1::Meanings(),
                                              phases_[i].fingerprint.meanings());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

std::vector<std::string> Timeline::ChangesOfCode() const {
  std::vector<std::string> changes;
  for (size_t i = 1; i < phases_.size(); ++i) {
    const Phase& phase = phases_[i];
    if (!IsOtherCode(phases_[i - 1].fingerprint.code(), phase.fingerprint.code())) continue;
    if (phase.first_step != kUnknownStep) {
      changes.push_back(OtherCodeFrom(absl::StrCat("step ", phase.first_step)));
    } else {
      changes.push_back(
          OtherCodeFrom(phase.pass ? absl::StrCat("epoch ", *phase.pass) : "a later epoch"));
    }
  }
  return changes;
}

std::string Timeline::NoticeOfCode(const v1::Change& change) const {
  if (!is_steered() || !ChangesBytes(change)) return "";
  const uint64_t code = last().fingerprint.code();
  if (IsOtherCode(phases_[phases_.size() - 2].fingerprint.code(), code))
    return OtherCodeFrom(FromWhere(change));
  if (!change.has_seek_cursor() || !IsOtherCode(CodeOf(change.seek_cursor()), code)) return "";
  return "the code of its Python functions changed since the cursor was made";
}

void Timeline::SetFirstMoves(uint64_t moves) {
  phases_.front().moves_before = moves;
  phases_.front().fingerprint.set_moves(moves);
  for (size_t i = 1; i < phases_.size(); ++i) {
    if (phases_[i].first_step != kUnknownStep)
      phases_[i].BeginAt(phases_[i].first_step, phases_[i - 1]);
  }
}

void Timeline::BeginBehind(const std::string& cursor, ChangedWork changed_work) {
  const uint64_t moves = MovesOf(cursor);
  if (moves == 0 || Read(cursor, changed_work).ok()) return;
  SetFirstMoves(moves);
  // Changes of this history in front of the cursor are other ones.
  if (!Read(cursor, changed_work).ok()) SetFirstMoves(0);
}

absl::StatusOr<ResumePoint> Timeline::Read(const std::string& cursor,
                                           ChangedWork changed_work) const {
  if (cursor.empty()) return ResumePoint();
  absl::StatusOr<ResumePoint> point = absl::UnknownError("");
  absl::Status status;
  // That it is of a plan of this history says more than that it is of none of the others.
  bool is_known = false;
  // From the last one on: a phase may have the plan of an earlier one.
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
    point = ReadCursor(cursor, phase->fingerprint, changed_work);
    if (!point.ok()) {
      if (!is_known) status = point.status();
      continue;
    }
    is_known = true;
    // It belongs to the phase that made the step in front of it.
    const Phase made = From(point->step > 0 ? point->step - 1 : 0).front();
    if (is_steered() && !SamePlan(made.fingerprint, phase->fingerprint)) {
      status = absl::FailedPreconditionError(
          absl::StrCat("the cursor belongs to a run with another history: that of step ",
                       point->step, " was made by what this one has at other steps"));
      continue;
    }
    if (made.fingerprint.moves() == point->moves) return point;
    status = OtherMoves(*point, made.fingerprint.moves());
  }
  return status;
}

absl::Status Timeline::OtherMoves(const ResumePoint& point, uint64_t moves) const {
  constexpr int kMostNamed = 4;
  const std::string where = absl::StrCat(" in front of step ", point.step);
  std::string ours;
  int named = 0;
  for (size_t i = 0; i < phases_.size(); ++i) {
    const bool has_steps =
        i + 1 == phases_.size() || phases_[i + 1].first_step > phases_[i].first_step;
    if (phases_[i].first_step >= point.step || !has_steps || !phases_[i].IsMove()) continue;
    if (++named <= kMostNamed)
      absl::StrAppend(&ours, named > 1 ? ", " : "", DescribeMove(phases_[i]));
  }
  if (named > kMostNamed) absl::StrAppend(&ours, ", and ", named - kMostNamed, " more");
  std::string text = "the cursor belongs to a run with another history: ";
  if (point.moves == 0) {
    absl::StrAppend(&text, "it had no change of position", where, ", this pipeline has ",
                    ours.empty() ? "those of the cursor that it began with" : ours);
  } else if (moves == 0) {
    absl::StrAppend(&text, "it had changes of position", where,
                    " (steps left out, a seek, another batch size, other weights, another epoch), "
                    "this pipeline has none");
  } else {
    absl::StrAppend(&text, "its changes of position", where, " are not those of this pipeline",
                    ours.empty() ? "" : absl::StrCat(", which are ", ours));
  }
  absl::StrAppend(
      &text,
      "; other elements would follow. A pipeline that is created from this cursor "
      "(create --resume), or with that run's history (create --history), goes on with it");
  return absl::FailedPreconditionError(text);
}

absl::StatusOr<Position> Timeline::ReadSeek(const std::string& cursor) const {
  if (cursor.empty()) return Position();
  absl::Status status;
  bool is_of_this_epoch = true;
  for (auto phase = phases_.rbegin(); phase != phases_.rend(); ++phase) {
    absl::StatusOr<ResumePoint> point = ReadCursor(cursor, phase->fingerprint);
    if (point.ok() && is_of_this_epoch) return std::move(point->position);
    if (point.ok()) {
      return absl::FailedPreconditionError(
          "the cursor belongs to an epoch with other stages, and no position of theirs is one of "
          "those that the pipeline has now; a pipeline that is created from it (create --resume), "
          "with the spec of that epoch, goes on behind it");
    }
    if (status.ok()) status = point.status();
    // What came before had other stages, whose counters mean something else.
    if (phase->pass) is_of_this_epoch = false;
  }
  return status;
}

std::optional<v1::Change> Timeline::FindWorld(const v1::World& world, uint64_t step) const {
  for (auto change = history_.rbegin(); change != history_.rend(); ++change) {
    if (IsWithdrawn(*change) || !change->has_world()) continue;
    const bool is_same = change->step() == step && change->world().hosts() == world.hosts() &&
                         change->world().host() == world.host();
    return is_same ? std::optional(*change) : std::nullopt;
  }
  return std::nullopt;
}

std::vector<Phase> Timeline::From(uint64_t step) const {
  size_t begin = phases_.size() - 1;
  while (begin > 0 && phases_[begin].first_step > step) --begin;
  return {phases_.begin() + static_cast<std::ptrdiff_t>(begin), phases_.end()};
}

}  // namespace penstock
