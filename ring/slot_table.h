// Which slot holds which step, and which slot may be used again: the rule of the ring, without
// memory, clocks or threads of its own.
//
//   kFree ──Claim()──► kClaimed ──Publish()──► kReady ──Sweep()──► kFree
//
// A slot that holds step s is free again when at least one consumer needs s, and every one that
// does has released it; a consumer needs the steps from its start to its stop, and what it kept
// when it was sent on. The floor is the step at which a newcomer starts: everything from it on is
// in the ring. It never goes back, and a step at or above it that nobody needs yet is kept for the
// newcomer, unless a consumer waits for a later one.
//
// Threads:  one at a time; the words of the control pages may change under it, and are only ever
//           compared.
// Cost:     Sweep() is slots × consumers loads at the most.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ring/layout.h"

namespace penstock::ring {

// One attached consumer as the rule sees it.
struct Member {
  const ControlPage* page = nullptr;
  uint64_t bells = 0;  // the bits of waits_for of those whose releases count
  uint64_t start = 0;  // kNoStep: it needs no further step, and nobody is to wait for it
  uint64_t stop = kNeverStops;
  // Slots whose steps, those below `kept_below`, are its own until it has released them: it was
  // detached or sent on while it held them (quarantine).
  uint64_t kept = 0;
  uint64_t kept_below = 0;

  bool Needs(uint32_t slot, uint64_t step) const {
    return (start <= step && step < stop) || (step < kept_below && (kept >> slot & 1) != 0);
  }
  bool HasReleased(uint32_t slot, uint64_t step) const {
    // SYNC slot-release: acquires the consumer's last reads of the slot.
    return page->released[slot].load(std::memory_order_seq_cst) == step + 1;
  }
};

class SlotTable {
 public:
  enum class State : uint8_t { kUnused, kFree, kClaimed, kReady };

  // Steps are published from `first_step` on.
  explicit SlotTable(uint32_t slots, uint64_t first_step = 0)
      : published_(first_step), floor_(first_step) {
    Grow(slots);
  }

  // Puts slots into use, up to `slots` in all.
  void Grow(uint32_t slots);

  // Of the slots in use at most `slots` are taken at a time.
  void SetLimit(uint32_t slots) { limit_ = slots; }

  // Of those, only so many are, as long as a lone consumer holds no more than a loop does: each
  // further one that it holds has another slot in its place. It counts from the next Sweep() on.
  void SetUsed(uint32_t slots) { used_ = slots; }
  static constexpr uint32_t kLoopLeases = 2;

  // A slot that is not claimed, whatever else holds; -1: none.
  void Pin(int slot) { pinned_ = slot; }
  int pinned() const { return pinned_; }

  // The free slot with the lowest number, or -1.
  int Claim();
  // Gives a claimed slot the next step; steps come in order.
  void Publish(uint32_t slot);
  // Frees every slot that may be used again. Returns whether any may be claimed now.
  bool Sweep(std::span<const Member> members);

  // For each ready slot one consumer that has not released it, as bits of their indices: a slot can
  // become free only after the release of one of them. Of several, the one that is furthest behind.
  uint64_t Blockers(std::span<const Member> members) const;

  // The slots, as bits, whose steps a consumer has taken and not released, by its own account of
  // its position.
  uint64_t Held(const Member& member, uint64_t position) const;
  // The first step that it needs and has not released; the next one if there is none.
  uint64_t FirstNeeded(const Member& member) const;
  // The first step that it still has to take, by its own account of its position; the next one if
  // there is none.
  uint64_t FirstUntaken(const Member& member, uint64_t position) const;
  // The first step from which on it needs every step, and has released none; the next one if there
  // is none. Whoever follows it can begin there.
  uint64_t TailNeeded(const Member& member) const;

  // Whether a slot is being filled.
  bool AnyClaimed() const;

  uint64_t published() const { return published_; }
  uint64_t floor() const { return floor_; }
  uint32_t slots() const { return slots_; }
  uint32_t limit() const { return limit_ < slots_ ? limit_ : slots_; }
  State state(uint32_t slot) const { return table_[slot].state; }
  uint64_t step(uint32_t slot) const { return table_[slot].step; }

 private:
  struct Slot {
    State state = State::kUnused;
    uint64_t step = kNoStep;
  };

  // How many slots may be taken at a time.
  uint32_t Usable(std::span<const Member> members) const;
  bool MayFree(uint32_t slot, std::span<const Member> members) const;

  std::array<Slot, kMaxSlots> table_;
  uint32_t slots_ = 0;
  uint32_t limit_ = kMaxSlots;
  uint32_t used_ = kMaxSlots;
  uint32_t usable_ = kMaxSlots;  // as Sweep() has seen it: what used_ comes to
  int pinned_ = -1;
  uint64_t published_;
  uint64_t floor_;
};

}  // namespace penstock::ring
