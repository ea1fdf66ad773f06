// A group in which each step goes to one consumer, first come first served, and the rule of what
// happens to a step whose holder dies. For the slots' rule it is one member that needs every step.
//
//   published ──► available ──Grant()──► leased ──Collect()──► done
//                     ▲                    │ its holder has gone: Forget()
//                     └── marked as such ──┘ (at_most_once: done)
//
// Threads:  one at a time (the writer's mutex); the consumers' pages may change under it.
// Owns:     the page on which it releases steps for all; the consumers' pages are the table's.
// Limits:   one item for each slot, besides those that a restart brought.
// Cost:     Collect() and Grant() look at each item that is not done.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ring/consumer_spec.h"
#include "ring/group_waiting.h"
#include "ring/slot_table.h"
#include "ring/split_log.h"
#include "ring/status.h"

namespace penstock::ring {

class SplitGroup {
 public:
  // A consumer of the group as it is seen here.
  struct Taker {
    uint32_t id = 0;
    uint64_t identity = 0;
    ControlPage* page = nullptr;
    uint64_t* granted = nullptr;  // how many steps it got in all: the daemon's own count
    bool* told_end = nullptr;
    uint32_t leases_max = 1;
    bool may_take = true;  // neither judged nor gone nor told of the end
  };

  // Of the group, the mode and the user of `first`. It begins with step `start`, whose position has
  // the cursor `cursor`. `log` may be null.
  SplitGroup(const ConsumerSpec& first, uint64_t start, std::string_view cursor, SplitLog* log);
  // Goes on from an earlier daemon's state.
  SplitGroup(std::string name, const SplitState& state, SplitLog* log);

  const std::string& name() const { return name_; }
  bool at_most_once() const { return at_most_once_; }
  GroupWaiting& waited_for() { return waited_for_; }
  const GroupWaiting& waited_for() const { return waited_for_; }
  Member member(uint64_t bells) const { return {page_.get(), bells, start_, kNeverStops}; }

  // A consumer that was there before the restart says what it holds and what it has let go of.
  void Rejoin(const Taker& taker, const ConsumerPosition& position);
  // It is forgotten, for good.
  void End() {
    if (log_ != nullptr) log_->End(name_);
  }
  // Nobody else comes back: what the others held is given out again.
  void EndRestore();

  // The cursors are those of the positions in front of the step and behind it.
  void Publish(uint64_t step, uint32_t slot, std::string_view before, std::string_view behind);
  // Takes note of what was released.
  void Collect(std::span<const Taker> takers);
  // Gives steps to those who ask for them, and ends the stream for them when it has its `end`; a
  // good one when nothing may come back, a failure at once. Returns the ids of those who got
  // something.
  std::vector<uint32_t> Grant(std::span<const Taker> takers, std::optional<Code> end);
  // The consumer takes none but the first `taken` of the steps that it was given: nobody has seen
  // the others.
  void TakeBack(uint32_t consumer, uint64_t taken);
  // The consumer has gone.
  void Forget(uint32_t consumer);

  // Whether anybody was given a step, of an earlier daemon too.
  bool took_anything() const { return took_anything_; }
  // How many steps were given out.
  uint64_t num_grants() const { return num_grants_; }
  // The steps that wait for somebody who asks are left out: it begins with the next one. REQUIRES:
  // !took_anything().
  void BeginLater();

  // A consumer that had steps has gone without leaving: it may come back.
  void NoteLoss() {
    is_lost_ = true;
    lost_since_ns_ = 0;
  }
  // Whether such a one may still come back; `rejoin_ns` after the first look at its loss it does
  // not.
  bool is_lost() const { return is_lost_; }
  void LookAtLoss(uint64_t now_ns, uint64_t rejoin_ns) {
    if (!is_lost_) return;
    if (lost_since_ns_ == 0) lost_since_ns_ = now_ns;
    is_lost_ = now_ns - lost_since_ns_ < rejoin_ns;
  }
  uint64_t lost_since_ns() const { return lost_since_ns_; }

  // For how long it has been deserted; 0 when it is not.
  uint64_t NoteDesertion(bool deserted, uint64_t now_ns) {
    if (!deserted) {
      deserted_since_ns_ = 0;
      return 0;
    }
    if (deserted_since_ns_ == 0) deserted_since_ns_ = now_ns;
    return now_ns - deserted_since_ns_;
  }

  uint32_t Leases(uint32_t consumer) const;
  // Steps that it holds in an earlier daemon's ring, and that this one keeps in case it dies.
  uint32_t KeptForIt(uint32_t consumer) const;
  // The slots of its leases, as bits; `below` becomes the step behind the last of them.
  uint64_t LeasedSlots(uint32_t consumer, uint64_t* below) const;
  // Steps that wait for a consumer.
  uint64_t available() const;
  // Whether there are steps that somebody has held, and that are not done.
  bool HasUnfinished() const;
  uint64_t redelivered() const { return redelivered_; }
  uint64_t lost() const { return lost_; }

 private:
  enum class State : uint8_t { kAvailable, kLeased, kAway };
  struct Item {
    State state = State::kAvailable;
    int slot = -1;          // -1: not published by this daemon yet
    uint32_t consumer = 0;  // kLeased
    uint64_t grant = 0;     // kLeased: how many its holder was given before
    uint64_t identity = 0;  // kAway: held by one who has not come back yet
    int held_bit = -1;      // kLeased before the restart: its bit of ControlPage::returned
    bool redelivered = false;
    std::string before;
    std::string behind;

    bool can_be_given() const { return state == State::kAvailable && slot >= 0; }
  };
  using Items = std::map<uint64_t, Item>;  // by step

  void Finish(Items::iterator item);
  void GiveBack(Items::iterator item);
  bool IsReturned(uint64_t step, const Item& item, const Taker& taker) const;

  const std::string name_;
  const bool at_most_once_;
  SplitLog* const log_;
  const uint64_t start_;
  std::unique_ptr<ControlPage> page_;
  uint64_t first_new_;  // steps below it that are no items are done
  uint64_t next_;       // the first step that was never given out
  Items items_;
  std::vector<uint32_t> waiting_;  // who asks, by id, in the order in which they were found to
  uint64_t redelivered_ = 0;
  uint64_t lost_ = 0;
  uint64_t num_grants_ = 0;
  uint64_t deserted_since_ns_ = 0;
  bool took_anything_ = false;
  bool is_lost_ = false;
  uint64_t lost_since_ns_ = 0;  // 0: not looked at yet
  GroupWaiting waited_for_;
};

}  // namespace penstock::ring
