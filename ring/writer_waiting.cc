#include <algorithm>
#include <bit>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ring/nanoseconds.h"
#include "ring/ring_writer.h"

namespace penstock::ring {
namespace {

// Who waits wakes up now and then, and may not get a processor, or Python's lock, for a while.
constexpr uint64_t kAwakeNs = 1'000'000'000;

std::string Seconds(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(ns) * 1e-9);
  return text;
}

// What a group is told that is ended since it held up others.
std::string HeldUp(std::string_view group, const std::string& why) {
  return "DETACHED: it held up other consumers (group \"" + std::string(group) + "\", " + why + ")";
}

std::string PolicyOf(const GroupWaiting& group, uint64_t guest_wait_ns) {
  if (group.is_told && group.slow == SlowPolicy::kBlock)
    return "policy block for " + Seconds(group.lag_ms * kNsPerMs) + " s";
  if (group.is_told) return "policy detach";
  return "of user " + std::to_string(group.uid) + ", who may only attach and is waited for " +
         Seconds(guest_wait_ns) + " s";
}

}  // namespace

bool RingWriter::Party::Has(const Consumer& one) const {
  if (consumer != nullptr) return one.id == consumer->id;
  if (rank != nullptr) return one.spec.mode == GroupMode::kRank && one.spec.group == rank->name();
  return one.splits() && one.spec.group == split->name();
}

HoldUp& RingWriter::Party::hold_up() const {
  if (consumer != nullptr) return consumer->hold_up;
  return rank != nullptr ? rank->waited_for().hold_up : split->waited_for().hold_up;
}

uint32_t RingWriter::Party::uid() const {
  if (consumer != nullptr) return consumer->spec.uid;
  return rank != nullptr ? rank->waited_for().uid : split->waited_for().uid;
}

bool RingWriter::Party::is_guest() const {
  if (consumer != nullptr) return consumer->spec.is_guest;
  return rank != nullptr ? rank->waited_for().is_guest : split->waited_for().is_guest;
}

std::vector<RingWriter::Party> RingWriter::Parties() const {
  std::vector<Party> parties;
  for (Consumer& consumer : consumers_.consumers()) {
    if (!consumer.judged && consumer.spec.mode == GroupMode::kBroadcast)
      parties.push_back({.consumer = &consumer});
  }
  for (RankGroup& rank : consumers_.ranks()) parties.push_back({.rank = &rank});
  for (const auto& split : consumers_.splits()) parties.push_back({.split = split.get()});
  return parties;
}

bool RingWriter::Waits(Consumer& consumer, uint64_t now_ns) const {
  if (consumer.judged || consumer.left) return false;
  const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
  if (position < (consumer.splits() ? consumer.granted : slots_.published())) return false;
  if (IsAsleep(consumer)) {
    consumer.waited_ns = now_ns;
    consumer.waited_position = position;
  }
  return consumer.waited_position == position && now_ns - consumer.waited_ns < kAwakeNs;
}

bool RingWriter::IsBehind(const Consumer& consumer, uint64_t* first) const {
  const uint64_t position = consumer.page->page().position.load(std::memory_order_relaxed);
  *first = slots_.FirstUntaken(consumer.member, position);
  if (*first < slots_.published()) return true;
  if (std::popcount(slots_.Held(consumer.member, position)) <= static_cast<int>(consumer.held_max))
    return false;
  *first = slots_.FirstNeeded(consumer.member);
  return true;
}

bool RingWriter::Holds(const Party& party, uint64_t* mark) const {
  if (party.consumer != nullptr) return IsBehind(*party.consumer, mark);
  if (party.rank != nullptr) {
    *mark = party.rank->FirstMissing();
    bool holds = *mark < slots_.published();
    for (const Consumer& consumer : consumers_.consumers()) {
      uint64_t first = 0;
      if (!party.Has(consumer) || consumer.judged || !IsBehind(consumer, &first)) continue;
      *mark = std::min(*mark, first);
      holds = true;
    }
    return holds;
  }
  const SplitGroup& split = *party.split;
  *mark = split.num_grants();
  if (slots_.FirstNeeded(split.member(0)) >= slots_.published()) return false;
  if (split.available() > 0 || !consumers_.HasTaker(split)) return true;
  const uint32_t share = header().lease_share.load(std::memory_order_relaxed);
  return std::any_of(consumers_.consumers().begin(), consumers_.consumers().end(),
                     [&](const Consumer& consumer) {
                       return party.Has(consumer) && split.Leases(consumer.id) > share;
                     });
}

std::optional<uint64_t> RingWriter::MostNs(const Party& party) const {
  std::optional<uint64_t> most;
  if (party.consumer != nullptr) {
    const ConsumerSpec& spec = party.consumer->spec;
    most = spec.slow == SlowPolicy::kBlock ? spec.lag_ms * kNsPerMs : 0;
  } else {
    const GroupWaiting& group =
        party.rank != nullptr ? party.rank->waited_for() : party.split->waited_for();
    if (group.is_told) {
      most = group.slow == SlowPolicy::kBlock ? group.lag_ms * kNsPerMs : 0;
    } else if (party.rank != nullptr && !party.rank->was_complete() &&
               party.rank->HasAbsent(now_ns_)) {
      most = kDefaultLagMs * kNsPerMs;
    } else if (party.split != nullptr && !consumers_.HasTaker(*party.split)) {
      most = party.split->is_lost() ? rejoin_ns_ : 0;
    }
  }
  const HoldUp& hold_up = party.hold_up();
  if (!party.is_guest() || !hold_up.of_other_users) return most;
  const uint64_t held_ns = hold_up.since_ns == 0 ? 0 : now_ns_ - hold_up.since_ns;
  const uint64_t of_purse = held_ns + purses_.LeftNs(party.uid());
  return most ? std::min(*most, of_purse) : of_purse;
}

uint32_t RingWriter::LookWhoHoldsUp(uint64_t now_ns) {
  now_ns_ = now_ns;
  std::vector<const Consumer*> waiting;
  for (Consumer& consumer : consumers_.consumers()) {
    if (Waits(consumer, now_ns)) waiting.push_back(&consumer);
  }
  const bool stuck = starved_ && !slots_.Sweep(consumers_.Members()) && !waiting.empty();
  // Who waits may hold more than its share, since that was larger, and keep the others from theirs.
  if (stuck && SlotsFor(header().lease_share.load(std::memory_order_relaxed)) > slots_.limit())
    lacks_slots_ = true;
  // While a slot is being filled, its step is what they wait for.
  const bool may_be_held_up = stuck && !slots_.AnyClaimed();
  std::set<uint32_t> guests;
  std::vector<Party> parties = Parties();
  for (const Party& party : parties) {
    uint64_t mark = 0;
    bool holds = may_be_held_up && Holds(party, &mark), others = false;
    if (holds) {
      bool anybody = false;
      for (const Consumer* const consumer : waiting) {
        if (party.Has(*consumer)) continue;
        anybody = true;
        others |= consumer->spec.uid != party.uid();
      }
      holds = anybody;
    }
    party.hold_up().Look(holds, others, mark, now_ns);
    if (party.is_guest() && party.hold_up().of_other_users) guests.insert(party.uid());
  }
  purses_.Look(guests, now_ns);
  std::erase_if(parties, [&](const Party& party) {
    const HoldUp& hold_up = party.hold_up();
    const std::optional<uint64_t> most = MostNs(party);
    return hold_up.since_ns == 0 || !most || now_ns - hold_up.since_ns < *most;
  });
  uint32_t sleepers = 0;
  // Behind a group nothing that was found before holds: what is left is found again by the next
  // look.
  for (const Party& party : parties) {
    sleepers |= SendOn(party);
    if (party.consumer == nullptr) break;
  }
  return sleepers;
}

uint32_t RingWriter::SendOn(const Party& party) {
  lacks_slots_ = true;
  if (party.consumer != nullptr) return SendOnConsumer(*party.consumer);
  if (party.rank != nullptr) return SendOnRanks(*party.rank);
  const SplitGroup& split = *party.split;
  if (split.took_anything() || split.waited_for().is_told || !split.waited_for().is_guest) {
    const std::string group = split.name();
    return EndGroup(group, GroupMode::kSplit,
                    HeldUp(group, PolicyOf(split.waited_for(), purses_.full_ns())));
  }
  // It has missed nothing that anybody has counted on.
  party.split->BeginLater();
  return 0;
}

uint32_t RingWriter::SendOnConsumer(Consumer& consumer) {
  consumer.hold_up.since_ns = 0;
  if (consumer.spec.slow == SlowPolicy::kSkip) return Skip(consumer);
  if (consumer.spec.slow == SlowPolicy::kBlock) return Judge(consumer, kVerdictReattach, "");
  return Judge(consumer, kVerdictDetached,
               "DETACHED: it held up other consumers at step " +
                   std::to_string(slots_.FirstNeeded(consumer.member)) + " (group \"" +
                   consumer.spec.group + "\", policy detach)");
}

uint32_t RingWriter::SendOnRanks(RankGroup& rank) {
  const std::string group = rank.name();
  const GroupWaiting& waited_for = rank.waited_for();
  if (!rank.was_complete()) {
    int place = -1;
    const uint32_t missing = rank.NumMissing(&place);
    return EndGroup(
        group, GroupMode::kRank,
        HeldUp(group,
               std::to_string(missing) + " of its " + std::to_string(rank.places()) +
                   " places, the first of rank " +
                   std::to_string(place < 0 ? 0 : place / static_cast<int>(rank.replicas())) +
                   ", have never been taken"));
  }
  if (waited_for.is_told && waited_for.slow != SlowPolicy::kBlock)
    return EndGroup(group, GroupMode::kRank, HeldUp(group, PolicyOf(waited_for, 0)));
  // Each goes on by itself, and they meet again as what they were.
  if (were_complete_.size() < kMaxConsumers) were_complete_.insert(group);
  uint32_t sleepers = 0;
  for (Consumer& consumer : consumers_.consumers()) {
    if (!consumer.judged && consumer.spec.mode == GroupMode::kRank && consumer.spec.group == group)
      sleepers |= Judge(consumer, kVerdictReattach, "");
  }
  return sleepers;
}

uint32_t RingWriter::EndGroup(std::string_view name, GroupMode mode, std::string_view message) {
  const std::string group(name);
  uint32_t sleepers = 0;
  for (Consumer& consumer : consumers_.consumers()) {
    if (!consumer.judged && consumer.spec.mode == mode && consumer.spec.group == group)
      sleepers |= Judge(consumer, kVerdictDetached, message);
  }
  if (mode == GroupMode::kSplit) consumers_.Drop(group);
  lacks_slots_ = true;
  return sleepers;
}

uint32_t RingWriter::Skip(Consumer& consumer) {
  ControlPage& page = consumer.page->page();
  const uint64_t next = slots_.published();
  // SYNC verdict: before the look at its position, as the consumer looks here after its own store.
  page.skip_to.store(next, std::memory_order_seq_cst);
  const uint64_t position = std::min(page.position.load(std::memory_order_seq_cst), next);
  consumer.member.kept = consumers_.HeldAtMost(consumer, position, slots_);
  consumer.member.kept_below = position;
  // What an earlier skip, which it has not seen yet, has left out is counted already.
  consumer.skipped += next - std::clamp(consumer.member.start, position, next);
  consumer.member.start = next;
  return ChangeWord(consumers_.TakeSleeper(consumer));
}

bool RingWriter::HasTakenAll(const Consumer& consumer) const {
  if (consumer.judged || consumer.left) return false;
  const ControlPage& page = consumer.page->page();
  if (consumer.splits())
    return !consumer.told_end && page.asked.load(std::memory_order_seq_cst) > consumer.granted;
  return page.position.load(std::memory_order_relaxed) >= slots_.published();
}

RingWriter::Passing RingWriter::PassingOf(const Party& party, bool for_other_users) const {
  Passing passing = Passing::kNobody;
  for (const Consumer& consumer : consumers_.consumers()) {
    if (party.Has(consumer) || consumer.judged || consumer.left) continue;
    if (for_other_users && consumer.spec.uid == party.uid()) continue;
    if (HasTakenAll(consumer)) return Passing::kNow;
    passing = Passing::kNotYet;
  }
  return passing;
}

RingWriter::Passing RingWriter::LookForPassing(std::vector<Party>* passing) const {
  passing->clear();
  const bool is_alone = consumers_.size() < 2 && consumers_.splits().empty();
  if (is_alone || slots_.AnyClaimed()) return Passing::kNobody;
  Passing found = Passing::kNobody;
  for (const Party& party : Parties()) {
    const bool is_spent = party.is_guest() && purses_.IsSpent(party.uid());
    const bool skips = party.consumer != nullptr && party.consumer->spec.slow == SlowPolicy::kSkip;
    const bool is_left =
        party.split != nullptr && !party.split->is_lost() && !consumers_.HasTaker(*party.split);
    const bool is_untouched =
        party.split != nullptr && party.is_guest() && !party.split->took_anything();
    uint64_t mark = 0;
    if (!(is_spent || skips || is_left || is_untouched) || !Holds(party, &mark)) continue;
    const Passing of_party = PassingOf(party, !skips && !is_left);
    found = std::max(found, of_party);
    if (of_party == Passing::kNow) passing->push_back(party);
  }
  return found;
}

bool RingWriter::PassOver(uint32_t* sleepers) {
  std::vector<Party> passing;
  if (LookForPassing(&passing) != Passing::kNow) return false;
  for (const Party& party : passing) {
    *sleepers |= SendOn(party);
    // What was found behind a group may be elsewhere.
    if (party.consumer == nullptr) break;
  }
  return true;
}

void RingWriter::SetGuestWait(uint64_t guest_wait_ns) {
  std::lock_guard<std::mutex> lock(mutex_);
  purses_.SetFull(guest_wait_ns);
}

void RingWriter::SetSlowPolicy(std::string_view group, SlowPolicy slow, uint32_t lag_ms) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (Consumer& consumer : consumers_.consumers()) {
    if (consumer.spec.mode != GroupMode::kBroadcast || consumer.spec.group != group) continue;
    consumer.spec.slow = slow;
    consumer.spec.lag_ms = lag_ms;
    consumer.hold_up.since_ns = 0;
  }
  if (RankGroup* const rank = consumers_.FindRank(group)) rank->waited_for().Tell(slow, lag_ms);
  if (SplitGroup* const split = consumers_.FindSplit(group)) split->waited_for().Tell(slow, lag_ms);
}

bool RingWriter::DropGroup(std::string_view group, std::string_view message) {
  uint32_t sleepers = 0;
  bool found = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    consumers_.Members();
    found = consumers_.FindSplit(group) != nullptr;
    for (const Consumer& consumer : consumers_.consumers())
      found |= !consumer.judged && !consumer.left && consumer.spec.group == group;
    for (const GroupMode mode : {GroupMode::kBroadcast, GroupMode::kRank, GroupMode::kSplit})
      sleepers |= EndGroup(group, mode, message);
  }
  Wake(sleepers);
  doorbell_.Ring();
  return found;
}

std::vector<GroupStats> RingWriter::Groups() const {
  std::lock_guard<std::mutex> lock(mutex_);
  consumers_.Members();
  std::vector<GroupStats> groups;
  const auto add = [&](const std::string& name, GroupMode mode, const GroupWaiting& waited_for) {
    GroupStats& group = groups.emplace_back();
    group.name = name;
    group.mode = mode;
    group.uid = waited_for.uid;
    group.is_told = waited_for.is_told;
    group.slow = waited_for.slow;
    group.lag_ms = waited_for.lag_ms;
    for (const Consumer& consumer : consumers_.consumers()) {
      group.consumers += consumer.spec.mode == mode && consumer.spec.group == name &&
                         !consumer.judged && !consumer.left;
    }
    return &group;
  };
  for (const RankGroup& rank : consumers_.ranks()) {
    GroupStats* const group = add(rank.name(), GroupMode::kRank, rank.waited_for());
    group->world_size = rank.world_size();
    int place = -1;
    group->missing = rank.NumMissing(&place);
    group->kept_ns = rank.LeftNs(now_ns_, rejoin_ns_);
  }
  for (const auto& split : consumers_.splits()) {
    GroupStats* const group = add(split->name(), GroupMode::kSplit, split->waited_for());
    group->position = slots_.FirstNeeded(split->member(0));
    group->available = split->available();
    group->is_kept = group->consumers == 0;
    if (!group->is_kept || !split->is_lost()) continue;
    const uint64_t since_ns = split->lost_since_ns();
    const uint64_t passed_ns = since_ns == 0 ? 0 : now_ns_ - since_ns;
    group->kept_ns = rejoin_ns_ - std::min(rejoin_ns_, passed_ns);
  }
  return groups;
}

std::vector<HoldUpStats> RingWriter::HoldUps() const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<HoldUpStats> hold_ups;
  for (const Party& party : Parties()) {
    const HoldUp& hold_up = party.hold_up();
    if (hold_up.since_ns == 0) continue;
    HoldUpStats& one = hold_ups.emplace_back();
    one.uid = party.uid();
    one.held_ns = now_ns_ - hold_up.since_ns;
    one.most_ns = MostNs(party);
    const Consumer* furthest = nullptr;
    for (const Consumer& consumer : consumers_.consumers()) {
      if (!party.Has(consumer) || consumer.judged || consumer.left) continue;
      const ControlPage& page = consumer.page->page();
      uint64_t first = 0, least = 0;
      // Of a split, who asks is not the one they wait for.
      if (consumer.splits() ? page.asked.load(std::memory_order_relaxed) > consumer.granted
                            : !IsBehind(consumer, &first))
        continue;
      if (furthest == nullptr ||
          (!consumer.splits() && IsBehind(*furthest, &least) && first < least))
        furthest = &consumer;
    }
    if (furthest != nullptr) {
      one.consumer = furthest->id;
      one.pid = furthest->pid;
      one.uid = furthest->spec.uid;
    }
    if (party.consumer != nullptr) {
      one.group = party.consumer->spec.group;
    } else if (party.rank != nullptr) {
      one.group = party.rank->name();
      one.mode = GroupMode::kRank;
      one.world_size = party.rank->world_size();
      int place = -1;
      one.missing = party.rank->NumMissing(&place);
      if (place >= 0) one.first_missing = static_cast<uint32_t>(place) / party.rank->replicas();
    } else {
      one.group = party.split->name();
      one.mode = GroupMode::kSplit;
    }
  }
  std::stable_sort(
      hold_ups.begin(), hold_ups.end(),
      [](const HoldUpStats& one, const HoldUpStats& other) { return one.held_ns > other.held_ns; });
  return hold_ups;
}

}  // namespace penstock::ring
