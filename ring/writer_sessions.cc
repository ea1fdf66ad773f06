#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "ring/may_take_place.h"
#include "ring/ring_writer.h"
#include "ring/rival.h"

namespace penstock::ring {
namespace {

// Split groups of guests that nobody takes steps of are kept up to so many, and so many are
// remembered over the daemon's death.
constexpr size_t kGuestSplits = 8;

constexpr char kNameTaken[] =
    "DETACHED: a user of more rights has taken the group's name; take another one";

}  // namespace

Status RingWriter::CheckUser(const ConsumerSpec& spec) const {
  if (!spec.is_guest || spec.mode == GroupMode::kBroadcast) return {};
  const RankGroup* const rank = consumers_.FindRank(spec.group);
  const SplitGroup* const split = consumers_.FindSplit(spec.group);
  const uint32_t uid = rank != nullptr    ? rank->waited_for().uid
                       : split != nullptr ? split->waited_for().uid
                                          : spec.uid;
  if (uid == spec.uid || uid == UINT32_MAX) return {};
  return {Code::kPermissionDenied,
          "the group is user " + std::to_string(uid) + "'s, and you are user " +
              std::to_string(spec.uid) +
              ": who may only attach shares ranks or a split with nobody else; take another name "
              "(group \"" +
              spec.group + "\")"};
}

uint32_t RingWriter::SendAwayGuests(const ConsumerSpec& spec) {
  if (spec.is_guest) return 0;
  uint32_t sleepers = 0;
  for (Consumer& consumer : consumers_.consumers()) {
    const bool shares =
        consumer.spec.mode != GroupMode::kBroadcast || spec.mode != GroupMode::kBroadcast;
    if (consumer.spec.is_guest && shares && !consumer.judged && consumer.spec.group == spec.group)
      sleepers |= Judge(consumer, kVerdictDetached, kNameTaken);
  }
  const SplitGroup* const split = consumers_.FindSplit(spec.group);
  if (split != nullptr && split->waited_for().is_guest) consumers_.Drop(spec.group);
  return sleepers;
}

void RingWriter::DropOldestOfGuests() {
  size_t kept = 0;
  std::string oldest;
  for (const auto& split : consumers_.splits()) {
    if (!split->waited_for().is_guest || consumers_.HasTaker(*split)) continue;
    if (kept++ == 0) oldest = split->name();
  }
  if (kept >= kGuestSplits) consumers_.Drop(oldest);
}

Status RingWriter::ChooseStart(const ConsumerSpec& spec, const ConsumerPosition& position,
                               const Consumer* rival, uint64_t* start) {
  slots_.Sweep(consumers_.Members());
  *start = slots_.floor();
  if (spec.mode == GroupMode::kSplit) return {};
  // What a place or a rival waits for is kept.
  if (rival != nullptr && rival->member.stop == kNeverStops) {
    *start = slots_.TailNeeded(rival->member);
  }
  uint64_t oldest = std::min(*start, slots_.floor());
  if (const RankGroup* rank = consumers_.FindRank(spec.group);
      rival == nullptr && spec.mode == GroupMode::kRank && rank != nullptr &&
      !rank->has_left(spec.place())) {
    *start = rank->start(spec.place());
    oldest = std::min(oldest, *start);
  }
  if (!position.known()) return {};
  if (position.step < oldest) {
    return {Code::kOutOfRange, "step " + std::to_string(position.step) +
                                   " has gone: the ring begins with step " +
                                   std::to_string(oldest)};
  }
  *start = position.step;
  return {};
}

void RingWriter::FillInPage(const ConsumerSpec& spec, const ConsumerPosition& position,
                            uint64_t start, ControlPage* page) const {
  page->start_step = start;
  page->takes_grants = spec.mode == GroupMode::kSplit ? 1 : 0;
  std::string_view cursor = cursors_.Before(start);
  // In front of what the ring has made nobody knows it but who comes from there, and is to know it
  // still.
  if (cursor.empty() && position.step == start)
    cursor = std::string_view(position.cursor).substr(0, kMaxCursorBytes);
  page->start_cursor_bytes = static_cast<uint32_t>(cursor.size());
  if (!cursor.empty()) std::memcpy(page->start_cursor, cursor.data(), cursor.size());
  page->position.store(start, std::memory_order_relaxed);
}

Status RingWriter::Attach(const ConsumerSpec& spec, const ConsumerPosition& position, int32_t pid,
                          ConsumerHandle* out) {
  std::lock_guard<std::mutex> attach_lock(attach_mutex_);
  Consumer consumer;
  uint32_t wanted_slots, sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // Who has left has left its place, though it may still hold slots.
    consumers_.Members();
    sleepers = SendAwayGuests(spec);
    if (Status status = consumers_.CheckGroup(spec); !status.ok()) return status;
    if (Status status = CheckUser(spec); !status.ok()) return status;
    const Consumer* rival = consumers_.FindRival(spec);
    if (rival != nullptr) {
      if (Status status = MayReplace(spec, rival->spec, rival->pid); !status.ok()) return status;
    }
    const int index = consumers_.FreeIndex();
    if (index < 0) {
      return {Code::kResourceExhausted,
              "the ring has as many consumers as it can: " + std::to_string(kMaxConsumers)};
    }
    const size_t of_user = consumers_.NumOf(spec.uid);
    if (spec.shares_places && rival == nullptr &&
        !MayTakePlace(consumers_.size(), of_user, kMaxConsumers)) {
      return {Code::kResourceExhausted,
              "too many consumers: the ring has " + std::to_string(kMaxConsumers) +
                  " places, and the last eighth is for users who have less than that; user " +
                  std::to_string(spec.uid) + " has " + std::to_string(of_user)};
    }
    consumer.index = static_cast<uint32_t>(index);
    consumer.id = ++last_id_;
    wanted_slots = SlotsFor(2) + 2;
  }
  consumer.pid = pid;
  consumer.spec = spec;
  if (Status status =
          ConsumerPage::Create(header().generation, consumer.id, consumer.index, &consumer.page);
      !status.ok()) {
    return status;
  }
  if (Status status = doorbell_.Watch(consumer.page->bell_fd()); !status.ok()) return status;
  GrowTo(wanted_slots);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const Consumer* rival = consumers_.FindRival(spec);
    const uint32_t rival_id = rival != nullptr ? rival->id : 0;
    uint64_t start = 0;
    if (Status status = ChooseStart(spec, position, rival, &start); !status.ok()) {
      doorbell_.Unwatch(consumer.page->bell_fd());
      return status;
    }
    // Each worker holds a batch while it asks for the next one, which another slot has to be there
    // for.
    if (spec.mode == GroupMode::kSplit && rival == nullptr &&
        consumers_.size() + 2 > slots_.slots()) {
      doorbell_.Unwatch(consumer.page->bell_fd());
      return {Code::kResourceExhausted,
              "the ring has " + std::to_string(slots_.slots()) +
                  " slots and cannot have more, and " + std::to_string(consumers_.size()) +
                  " consumers: with another worker of a split group all of them could be held by "
                  "those who wait for the next batch (group \"" +
                  spec.group + "\"); give it more memory, or fewer workers"};
    }
    ControlPage& page = consumer.page->page();
    FillInPage(spec, position, start, &page);
    consumer.member = {&page, uint64_t{1} << consumer.index, start, kNeverStops, 0, 0};
    if (spec.mode == GroupMode::kRank && consumers_.FindRank(spec.group) == nullptr) {
      RankGroup& rank = consumers_.AddRank(spec, start);
      if (were_complete_.erase(spec.group) > 0) rank.NoteComplete();
    }
    if (spec.mode == GroupMode::kSplit) {
      SplitGroup* split = consumers_.FindSplit(spec.group);
      if (split == nullptr) split = &StartSplit(spec, start);
      split->Rejoin({consumer.id, spec.identity, &page, nullptr, nullptr, 0, true}, position);
      // What it holds of an earlier ring is made again, and needs slots as long as it is held.
      if (split->KeptForIt(consumer.id) > 0) lacks_slots_ = true;
    }
    *out = {.id = consumer.id,
            .start_step = start,
            .segment_fd = segment_->fd(),
            .control_fd = consumer.page->fd(),
            .bell_fd = consumer.page->bell_fd(),
            .takes_grants = consumer.splits()};
    consumers_.Add(std::move(consumer));
    // After the newcomer is there, so that what the other one needed is needed all the time.
    for (Consumer& other : consumers_.consumers()) {
      if (other.id == rival_id) {
        sleepers |= Judge(other, kVerdictDetached, kTakenOver);
      }
    }
    ShareLeases();
  }
  Wake(sleepers);
  doorbell_.Ring();
  return {};
}

SplitGroup& RingWriter::StartSplit(const ConsumerSpec& spec, uint64_t start) {
  SplitLog* log = split_log_;
  if (spec.is_guest) {
    DropOldestOfGuests();
    const auto of_guests =
        std::count_if(consumers_.splits().begin(), consumers_.splits().end(),
                      [](const auto& split) { return split->waited_for().is_guest; });
    if (of_guests >= static_cast<std::ptrdiff_t>(kGuestSplits)) log = nullptr;
  }
  SplitGroup& split =
      consumers_.AddSplit(std::make_unique<SplitGroup>(spec, start, cursors_.Before(start), log));
  // What is published already.
  for (uint64_t step = start; step < slots_.published(); ++step) {
    for (uint32_t slot = 0; slot < slots_.slots(); ++slot) {
      if (slots_.state(slot) == SlotTable::State::kReady && slots_.step(slot) == step) {
        split.Publish(step, slot, cursors_.Before(step), cursors_.Before(step + 1));
      }
    }
  }
  return split;
}

void RingWriter::Detach(uint32_t id) {
  Consumer removed;
  uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // What everybody had released while this one was here counts as served.
    slots_.Sweep(consumers_.Members());
    removed = consumers_.Remove(id, slots_);
    ShareLeases();
    // What it held may be another one's now.
    sleepers = ChangeWord(Grant());
  }
  if (removed.page != nullptr) doorbell_.Unwatch(removed.page->bell_fd());
  Wake(sleepers);
  doorbell_.Ring();
}

void RingWriter::Deal() {
  uint32_t sleepers;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    sleepers = ChangeWord(Grant());
  }
  Wake(sleepers);
}

uint32_t RingWriter::Judge(Consumer& consumer, int32_t verdict, std::string_view message) {
  return ChangeWord(consumers_.Judge(consumer, verdict, message, slots_));
}

void RingWriter::SendAway() {
  uint32_t sleepers = 0;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Consumer& consumer : consumers_.consumers()) {
      if (!consumer.judged) sleepers |= Judge(consumer, kVerdictReattach, "");
    }
  }
  Wake(sleepers);
}

bool RingWriter::Dismiss(uint32_t id, std::string_view message) {
  uint32_t sleepers = 0;
  bool found = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (Consumer& consumer : consumers_.consumers()) {
      if (consumer.id != id || consumer.judged) continue;
      sleepers = Judge(consumer, kVerdictDetached, message);
      found = true;
      break;
    }
  }
  Wake(sleepers);
  doorbell_.Ring();
  return found;
}

void RingWriter::RestoreSplit(const std::string& group, const SplitState& state) {
  std::lock_guard<std::mutex> lock(mutex_);
  consumers_.AddSplit(std::make_unique<SplitGroup>(group, state, split_log_));
}

void RingWriter::EndRestore(const std::optional<std::set<std::string>>& complete) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (RankGroup& rank : consumers_.ranks()) {
    if (!complete || complete->contains(rank.name())) rank.NoteComplete();
  }
  for (const auto& split : consumers_.splits()) split->EndRestore();
}

std::set<std::string> RingWriter::CompleteGroups() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::set<std::string> groups;
  for (const RankGroup& rank : consumers_.ranks()) {
    if (rank.was_complete()) groups.insert(rank.name());
  }
  return groups;
}

std::vector<ConsumerStats> RingWriter::Consumers() const {
  std::lock_guard<std::mutex> lock(mutex_);
  consumers_.Members();
  std::vector<ConsumerStats> stats;
  for (const Consumer& consumer : consumers_.consumers()) {
    const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
    ConsumerStats& one = stats.emplace_back();
    one.id = consumer.id;
    one.group = consumer.spec.group;
    one.pid = consumer.pid;
    one.uid = consumer.spec.uid;
    one.position = position;
    one.name = consumer.spec.name;
    one.mode = consumer.spec.mode;
    one.rank = consumer.spec.rank;
    one.world_size = consumer.spec.world_size;
    one.skipped = consumer.skipped;
    one.detached = consumer.judged;
    one.left = consumer.left;
    one.evicted = consumer.evicted;
    one.waits = IsAsleep(consumer);
    one.slow = consumer.spec.slow;
    one.looks = consumer.looks;
    one.waiting_looks = consumer.waiting_looks;
    one.lag_ms = consumer.spec.lag_ms;
    if (consumer.splits()) {
      if (const SplitGroup* split = consumers_.FindSplit(consumer.spec.group)) {
        one.leases = split->Leases(consumer.id);
        const bool goes_on =
            consumer.page->page().stop_at.load(std::memory_order_relaxed) == kNeverStops;
        one.lag = goes_on ? split->available() : 0;
      }
    } else {
      const uint64_t end = std::min(slots_.published(), consumer.member.stop);
      one.lag = end - std::min(end, position);
      one.leases = static_cast<uint32_t>(std::popcount(slots_.Held(consumer.member, position)));
    }
  }
  return stats;
}

}  // namespace penstock::ring
