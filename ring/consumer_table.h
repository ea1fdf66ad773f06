// The consumers that are attached to one ring, and their groups.
//
// Threads:  one at a time (the writer's mutex); the control pages' words may change under it.
// Owns:     the consumers' control pages and bells, and the groups.
// Limits:   kMaxConsumers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ring/consumer_spec.h"
#include "ring/control_page.h"
#include "ring/group_waiting.h"
#include "ring/rank_group.h"
#include "ring/slot_table.h"
#include "ring/split_group.h"

namespace penstock::ring {

struct Consumer {
  uint32_t id = 0;
  int32_t pid = 0;
  uint32_t index = 0;
  ConsumerSpec spec;
  std::unique_ptr<ConsumerPage> page;
  Member member;  // of a split group, that is the member, only what it kept when the group ended
  uint64_t granted = 0;        // steps it was given, in a split group
  bool told_end = false;       // it looks for no further step there, even if one comes back
  uint64_t skipped = 0;        // steps it missed
  bool judged = false;         // it gets no further step
  bool left = false;           // of its own accord: it takes no further step, and may hold some
  uint64_t looks = 0;          // how often Tick() has looked at it
  uint64_t waiting_looks = 0;  // and found it asleep: it waits for batches
  bool evicted = false;        // since it was sent away for good
  // How many batches an honest one can hold: by the largest share that it has had. A share shrinks
  // when others come; what is held does not.
  uint32_t held_max = 0;
  // When it was last found waiting, and at which position: it may be awake for a moment, and wait
  // on.
  uint64_t waited_ns = 0;
  uint64_t waited_position = kNoStep;
  HoldUp hold_up;

  bool splits() const { return spec.mode == GroupMode::kSplit; }
};

// Its bit of FUTEX_WAIT_BITSET.
inline uint32_t WaitBit(const Consumer& consumer) { return uint32_t{1} << (consumer.index % 32); }

// Which of the consumers that sleep are to be woken.
enum class Sleepers : uint8_t {
  kServed,      // those that have as many batches as they wait for
  kWithABatch,  // those that have any: no further one comes before something is released
  kAll,
};

class ConsumerTable {
 public:
  // An index that no consumer has, or -1 when all are taken.
  int FreeIndex() const;
  // Of that user's; those that have left and still hold something count too.
  size_t NumOf(uint32_t uid) const;

  // Whether the newcomer's mode is that of its group, if there is one.
  Status CheckGroup(const ConsumerSpec& spec) const;
  // The consumer whose place the newcomer wants, by rank, name or identity; null if it is free.
  // Whoever has left wants none any more, whatever it still holds.
  Consumer* FindRival(const ConsumerSpec& spec);

  RankGroup* FindRank(std::string_view group);
  SplitGroup* FindSplit(std::string_view group);
  RankGroup& AddRank(const ConsumerSpec& spec, uint64_t start);
  SplitGroup& AddSplit(std::unique_ptr<SplitGroup> group);

  void Add(Consumer consumer);
  // The place, if it is empty, is nobody's from now on.
  void LeaveEmptyPlace(std::string_view group, uint32_t place);
  // Takes a consumer out of the table; its page is null when there is none of that id. In its
  // group, a place waits for its successor unless it has left of its own accord, and steps go back.
  Consumer Remove(uint32_t id, const SlotTable& slots);
  // It gets no further step, and its name and place are free; what it holds stays its own.
  // `message` says why. Returns the bit to wake.
  uint32_t Judge(Consumer& consumer, int32_t verdict, std::string_view message,
                 const SlotTable& slots);

  // The slots that the consumer holds, as bits, by its own account of its position; one that claims
  // more than it can hold (held_max) wins nothing by it.
  uint64_t HeldAtMost(const Consumer& consumer, uint64_t position, const SlotTable& slots) const;
  // How many slots it keeps, in a group of any kind: no more than the largest share that it has
  // had. One beyond that, which it copies, is soon let go of, unless it has been sent away.
  uint32_t NumKept(const Consumer& consumer, const SlotTable& slots);

  // Takes over what each consumer has written about its stop and its releases, so that the name and
  // place of one that has left are free, and returns the members for SlotTable.
  std::span<const Member> Members();

  // Publishes to the split groups.
  void Publish(uint64_t step, uint32_t slot, std::string_view before, std::string_view behind);
  // Gives steps to those who ask for them. Returns the wait bits of those to be woken.
  uint32_t Grant(std::optional<Code> end);

  // Whether somebody takes steps of the split group, or may.
  bool HasTaker(const SplitGroup& split) const;
  // Forgets the split groups that have had nobody who takes steps for `rejoin_ns` while other
  // consumers are there, which they would hold up. Returns whether there were any.
  bool DropDeserted(uint64_t now_ns, uint64_t rejoin_ns);
  // Forgets a split group. Who still holds a step of it keeps its slot. REQUIRES: !HasTaker().
  void Drop(std::string_view group);

  // The wait bits of those; marks them as awake.
  uint32_t TakeSleepers(uint64_t published, Sleepers which);
  // The consumer's bit, if it sleeps.
  uint32_t TakeSleeper(const Consumer& consumer);

  std::span<Consumer> consumers() { return consumers_; }
  std::span<RankGroup> ranks() { return ranks_; }
  std::span<const std::unique_ptr<SplitGroup>> splits() const { return splits_; }
  uint32_t size() const { return static_cast<uint32_t>(consumers_.size()); }

 private:
  std::vector<SplitGroup::Taker> Takers(const SplitGroup& group);
  // What the group's consumers hold becomes their own.
  void KeepLeases(const SplitGroup& split);
  // Takes over who has left.
  void NoteStops();
  // Forgets the split group if nobody takes its steps, and nobody ever has.
  void ForgetIfUntouched(std::string_view group);
  void LeavePlace(const Consumer& consumer, bool left, uint64_t tail);
  // REQUIRES: it is one of ranks_.
  void EraseIfEmpty(RankGroup* rank);

  std::vector<Consumer> consumers_;
  std::vector<RankGroup> ranks_;
  std::vector<std::unique_ptr<SplitGroup>> splits_;
  std::vector<Member> members_;  // as Members() has returned them
};

}  // namespace penstock::ring
