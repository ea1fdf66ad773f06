#include "ring/consumer_table.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include "ring/rival.h"

namespace penstock::ring {
namespace {

uint64_t BellOf(const Consumer& consumer) { return uint64_t{1} << consumer.index; }

std::string_view ModeName(GroupMode mode) {
  switch (mode) {
    case GroupMode::kBroadcast:
      return "broadcast";
    case GroupMode::kRank:
      return "rank";
    case GroupMode::kSplit:
      return "split";
  }
  return "unknown";
}

}  // namespace

int ConsumerTable::FreeIndex() const {
  uint64_t taken = 0;
  for (const Consumer& consumer : consumers_) taken |= BellOf(consumer);
  for (uint32_t index = 0; index < kMaxConsumers; ++index) {
    if ((taken >> index & 1) == 0) return static_cast<int>(index);
  }
  return -1;
}

size_t ConsumerTable::NumOf(uint32_t uid) const {
  return static_cast<size_t>(
      std::count_if(consumers_.begin(), consumers_.end(),
                    [uid](const Consumer& consumer) { return consumer.spec.uid == uid; }));
}

Status ConsumerTable::CheckGroup(const ConsumerSpec& spec) const {
  const auto refuse = [&spec](std::string what) {
    return Status{Code::kFailedPrecondition, "the group is another one: " + std::move(what) +
                                                 " (group \"" + spec.group + "\")"};
  };
  for (const Consumer& consumer : consumers_) {
    if (consumer.judged || consumer.left || consumer.spec.group != spec.group ||
        consumer.spec.mode == spec.mode) {
      continue;
    }
    return refuse("its mode is " + std::string(ModeName(consumer.spec.mode)) + ", not " +
                  std::string(ModeName(spec.mode)));
  }
  if (spec.mode == GroupMode::kRank) {
    for (const RankGroup& group : ranks_) {
      if (group.name() != spec.group) continue;
      if (group.world_size() != spec.world_size || group.replicas() != spec.replicas) {
        return refuse("it has " + std::to_string(group.world_size()) + " ranks of " +
                      std::to_string(group.replicas()) + " replicas, not " +
                      std::to_string(spec.world_size) + " of " + std::to_string(spec.replicas));
      }
    }
  }
  if (spec.mode == GroupMode::kSplit) {
    for (const auto& group : splits_) {
      if (group->name() == spec.group && group->at_most_once() != spec.at_most_once) {
        return refuse(group->at_most_once() ? "it delivers at most once"
                                            : "it delivers at least once");
      }
    }
  }
  return {};
}

Consumer* ConsumerTable::FindRival(const ConsumerSpec& spec) {
  for (Consumer& consumer : consumers_) {
    if (!consumer.judged && !consumer.left && AreRivals(spec, consumer.spec)) return &consumer;
  }
  return nullptr;
}

RankGroup* ConsumerTable::FindRank(std::string_view group) {
  const auto found = std::find_if(ranks_.begin(), ranks_.end(),
                                  [group](const RankGroup& rank) { return rank.name() == group; });
  return found == ranks_.end() ? nullptr : &*found;
}

SplitGroup* ConsumerTable::FindSplit(std::string_view group) {
  for (const auto& split : splits_) {
    if (split->name() == group) return split.get();
  }
  return nullptr;
}

RankGroup& ConsumerTable::AddRank(const ConsumerSpec& spec, uint64_t start) {
  return ranks_.emplace_back(spec, start);
}

SplitGroup& ConsumerTable::AddSplit(std::unique_ptr<SplitGroup> group) {
  return *splits_.emplace_back(std::move(group));
}

void ConsumerTable::Add(Consumer consumer) {
  if (RankGroup* rank = FindRank(consumer.spec.group);
      rank != nullptr && consumer.spec.mode == GroupMode::kRank) {
    rank->Enter(consumer.spec.place(), consumer.id);
    rank->NoteCompleteness();
    rank->waited_for().Take(consumer.spec);
  }
  if (SplitGroup* split = consumer.splits() ? FindSplit(consumer.spec.group) : nullptr)
    split->waited_for().Take(consumer.spec);
  consumers_.push_back(std::move(consumer));
}

void ConsumerTable::LeavePlace(const Consumer& consumer, bool left, uint64_t tail) {
  RankGroup* rank = FindRank(consumer.spec.group);
  if (rank == nullptr || consumer.spec.mode != GroupMode::kRank ||
      rank->consumer(consumer.spec.place()) != consumer.id) {
    return;
  }
  if (left) {
    rank->Leave(consumer.spec.place());
  } else {
    rank->Lose(consumer.spec.place(), tail);
  }
  EraseIfEmpty(rank);
}

void ConsumerTable::EraseIfEmpty(RankGroup* rank) {
  if (rank->IsEmpty()) ranks_.erase(ranks_.begin() + (rank - ranks_.data()));
}

void ConsumerTable::LeaveEmptyPlace(std::string_view group, uint32_t place) {
  RankGroup* const rank = FindRank(group);
  if (rank == nullptr || place >= rank->places() || rank->consumer(place) != 0) return;
  rank->Leave(place);
  EraseIfEmpty(rank);
}

Consumer ConsumerTable::Remove(uint32_t id, const SlotTable& slots) {
  Members();
  const auto found = std::find_if(consumers_.begin(), consumers_.end(),
                                  [id](const Consumer& consumer) { return consumer.id == id; });
  if (found == consumers_.end()) return {};
  Consumer removed = std::move(*found);
  consumers_.erase(found);
  if (removed.splits()) {
    if (SplitGroup* split = FindSplit(removed.spec.group)) {
      split->Forget(id);
      if (!removed.left && removed.granted > 0) split->NoteLoss();
      ForgetIfUntouched(removed.spec.group);
    }
  } else {
    LeavePlace(removed, false, slots.TailNeeded(removed.member));
  }
  return removed;
}

uint32_t ConsumerTable::Judge(Consumer& consumer, int32_t verdict, std::string_view message,
                              const SlotTable& slots) {
  ControlPage& page = consumer.page->page();
  page.verdict_bytes = static_cast<uint32_t>(std::min<size_t>(message.size(), kMaxVerdictBytes));
  std::memcpy(page.verdict_message, message.data(), page.verdict_bytes);
  // SYNC verdict: before the look at its position, as the consumer looks here after its own store.
  page.verdict.store(verdict, std::memory_order_seq_cst);
  consumer.judged = true;
  consumer.evicted = verdict == kVerdictDetached;
  if (!consumer.splits()) {
    const uint64_t position =
        std::min(page.position.load(std::memory_order_seq_cst), slots.published());
    const uint64_t tail = slots.TailNeeded(consumer.member);
    consumer.member.kept = HeldAtMost(consumer, position, slots);
    consumer.member.kept_below = position;
    consumer.member.start = kNoStep;
    LeavePlace(consumer, false, tail);
  }
  return TakeSleeper(consumer);
}

uint64_t ConsumerTable::HeldAtMost(const Consumer& consumer, uint64_t position,
                                   const SlotTable& slots) const {
  uint64_t held = slots.Held(consumer.member, position);
  while (std::popcount(held) > static_cast<int>(consumer.held_max)) held &= held - 1;
  return held;
}

uint32_t ConsumerTable::NumKept(const Consumer& consumer, const SlotTable& slots) {
  uint64_t held = 0;
  uint32_t leases = 0, kept_for_it = 0;
  if (!consumer.splits()) {
    held =
        slots.Held(consumer.member, consumer.page->page().position.load(std::memory_order_seq_cst));
  } else {
    if (consumer.member.kept != 0) held = slots.Held(consumer.member, kNoStep);
    if (const SplitGroup* split = FindSplit(consumer.spec.group)) {
      leases = split->Leases(consumer.id);
      kept_for_it = split->KeptForIt(consumer.id);
    }
  }
  const uint32_t most = consumer.held_max - (consumer.judged || consumer.held_max == 0 ? 0 : 1);
  return std::min(static_cast<uint32_t>(std::popcount(held)) + leases, most) + kept_for_it;
}

std::vector<SplitGroup::Taker> ConsumerTable::Takers(const SplitGroup& group) {
  std::vector<SplitGroup::Taker> takers;
  for (Consumer& consumer : consumers_) {
    if (!consumer.splits() || consumer.spec.group != group.name()) continue;
    ControlPage& page = consumer.page->page();
    const bool stopped = page.stop_at.load(std::memory_order_seq_cst) != kNeverStops;
    takers.push_back({consumer.id, consumer.spec.identity, &page, &consumer.granted,
                      &consumer.told_end, consumer.held_max,
                      !consumer.judged && !stopped && !consumer.told_end});
  }
  return takers;
}

void ConsumerTable::NoteStops() {
  for (Consumer& consumer : consumers_) {
    const uint64_t stop = consumer.page->page().stop_at.load(std::memory_order_seq_cst);
    if (consumer.left || stop == kNeverStops) continue;
    consumer.left = true;
    consumer.member.stop = stop;
    LeavePlace(consumer, true, 0);
    SplitGroup* split = consumer.splits() ? FindSplit(consumer.spec.group) : nullptr;
    if (split == nullptr) continue;
    split->TakeBack(consumer.id, stop);
    ForgetIfUntouched(consumer.spec.group);
  }
}

std::span<const Member> ConsumerTable::Members() {
  members_.clear();
  NoteStops();
  for (const Consumer& consumer : consumers_) {
    if (!consumer.splits() || consumer.member.kept != 0) members_.push_back(consumer.member);
  }
  for (const RankGroup& rank : ranks_) rank.AddMissing(&members_);
  for (const auto& split : splits_) {
    const std::vector<SplitGroup::Taker> takers = Takers(*split);
    split->Collect(takers);
    uint64_t bells = 0;
    for (const Consumer& consumer : consumers_) {
      if (consumer.splits() && consumer.spec.group == split->name()) bells |= BellOf(consumer);
    }
    members_.push_back(split->member(bells));
  }
  return members_;
}

void ConsumerTable::Publish(uint64_t step, uint32_t slot, std::string_view before,
                            std::string_view behind) {
  for (const auto& split : splits_) split->Publish(step, slot, before, behind);
}

uint32_t ConsumerTable::Grant(std::optional<Code> end) {
  NoteStops();
  uint32_t bits = 0;
  for (const auto& split : splits_) {
    const std::vector<SplitGroup::Taker> takers = Takers(*split);
    split->Collect(takers);
    for (const uint32_t id : split->Grant(takers, end)) {
      for (const Consumer& consumer : consumers_) {
        if (consumer.id == id) bits |= TakeSleeper(consumer);
      }
    }
  }
  return bits;
}

bool ConsumerTable::HasTaker(const SplitGroup& split) const {
  return std::any_of(consumers_.begin(), consumers_.end(), [&split](const Consumer& consumer) {
    return consumer.splits() && consumer.spec.group == split.name() && !consumer.left &&
           !consumer.judged;
  });
}

void ConsumerTable::Drop(std::string_view group) {
  std::erase_if(splits_, [&](const std::unique_ptr<SplitGroup>& split) {
    if (split->name() != group) return false;
    KeepLeases(*split);
    split->End();
    return true;
  });
}

void ConsumerTable::ForgetIfUntouched(std::string_view group) {
  const SplitGroup* const split = FindSplit(group);
  if (split != nullptr && !split->took_anything() && !HasTaker(*split)) Drop(group);
}

bool ConsumerTable::DropDeserted(uint64_t now_ns, uint64_t rejoin_ns) {
  std::vector<std::string> deserted;
  for (const auto& split : splits_) {
    const bool has_others =
        std::any_of(consumers_.begin(), consumers_.end(), [&split](const Consumer& consumer) {
          return !consumer.splits() || consumer.spec.group != split->name();
        });
    const bool is_deserted = has_others && !HasTaker(*split);
    split->LookAtLoss(now_ns, rejoin_ns);
    if (split->NoteDesertion(is_deserted, now_ns) >= rejoin_ns && is_deserted)
      deserted.push_back(split->name());
  }
  for (const std::string& group : deserted) Drop(group);
  return !deserted.empty();
}

void ConsumerTable::KeepLeases(const SplitGroup& split) {
  for (Consumer& consumer : consumers_) {
    if (!consumer.splits() || consumer.spec.group != split.name()) continue;
    consumer.member.start = kNoStep;
    uint64_t below = 0;
    const uint64_t leased = split.LeasedSlots(consumer.id, &below);
    // One that holds nothing of this group may hold something of an earlier one of that name.
    if (leased == 0) continue;
    consumer.member.kept = leased;
    consumer.member.kept_below = below;
  }
}

uint32_t ConsumerTable::TakeSleeper(const Consumer& consumer) {
  std::atomic<uint64_t>& wake_at = consumer.page->page().wake_at;
  // SYNC consumer-wake
  uint64_t wanted = wake_at.load(std::memory_order_seq_cst);
  if (wanted == kAwake) return 0;
  // Fails only when the consumer has woken up by itself, and then it looks again.
  if (!wake_at.compare_exchange_strong(wanted, kAwake, std::memory_order_seq_cst)) return 0;
  return WaitBit(consumer);
}

uint32_t ConsumerTable::TakeSleepers(uint64_t published, Sleepers which) {
  uint32_t bits = 0;
  for (const Consumer& consumer : consumers_) {
    const ControlPage& page = consumer.page->page();
    // SYNC consumer-wake: after the store to `published`, as the consumer looks there after its
    // own.
    const uint64_t wanted = page.wake_at.load(std::memory_order_seq_cst);
    if (wanted == kAwake) continue;
    // One that takes grants never waits for more than one.
    const bool takes_any = which == Sleepers::kWithABatch && !consumer.splits();
    const uint64_t enough = takes_any ? page.position.load(std::memory_order_relaxed) + 1 : wanted;
    const uint64_t have = consumer.splits() ? consumer.granted : published;
    if (have < enough && which != Sleepers::kAll) continue;
    bits |= TakeSleeper(consumer);
  }
  return bits;
}

}  // namespace penstock::ring
