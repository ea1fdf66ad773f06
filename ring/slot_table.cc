#include "ring/slot_table.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace penstock::ring {

void SlotTable::Grow(uint32_t slots) {
  for (; slots_ < slots; ++slots_) table_[slots_].state = State::kFree;
}

int SlotTable::Claim() {
  int free = -1;
  uint32_t taken = 0;
  for (uint32_t slot = slots_; slot-- > 0;) {
    if (table_[slot].state == State::kFree && static_cast<int>(slot) != pinned_) {
      free = static_cast<int>(slot);
    } else {
      ++taken;
    }
  }
  if (free < 0 || taken >= std::min(limit_, usable_)) return -1;
  table_[free].state = State::kClaimed;
  return free;
}

void SlotTable::Publish(uint32_t slot) {
  assert(table_[slot].state == State::kClaimed);
  table_[slot] = {State::kReady, published_++};
}

bool SlotTable::MayFree(uint32_t slot, std::span<const Member> members) const {
  const uint64_t step = table_[slot].step;
  bool taken = false;
  bool passed_over = false;
  for (const Member& member : members) {
    if (!member.Needs(slot, step)) {
      passed_over |= member.start > step && member.start != kNoStep;
      continue;
    }
    if (!member.HasReleased(slot, step)) return false;
    taken = true;
  }
  return taken || passed_over || step < floor_;
}

bool SlotTable::Sweep(std::span<const Member> members) {
  uint32_t taken = 0;
  uint64_t floor = floor_;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    Slot& entry = table_[slot];
    if (entry.state == State::kReady && MayFree(slot, members)) {
      floor = std::max(floor, entry.step + 1);
      entry.state = State::kFree;
    }
    taken += entry.state == State::kFree ? 0 : 1;
  }
  floor_ = floor;
  usable_ = Usable(members);
  return taken < usable_;
}

bool SlotTable::AnyClaimed() const {
  return std::any_of(table_.begin(), table_.end(),
                     [](const Slot& slot) { return slot.state == State::kClaimed; });
}

uint32_t SlotTable::Usable(std::span<const Member> members) const {
  if (used_ >= limit() || members.size() != 1) return limit();
  const uint64_t position = members[0].page->position.load(std::memory_order_relaxed);
  const auto held = static_cast<uint32_t>(std::popcount(Held(members[0], position)));
  return std::min(limit(), used_ + (held > kLoopLeases ? held - kLoopLeases : 0));
}

uint64_t SlotTable::Blockers(std::span<const Member> members) const {
  uint64_t blockers = 0;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    if (table_[slot].state != State::kReady) continue;
    const uint64_t step = table_[slot].step;
    const Member* last = nullptr;
    uint64_t last_position = UINT64_MAX;
    for (const Member& member : members) {
      if (!member.Needs(slot, step) || member.HasReleased(slot, step)) continue;
      const uint64_t position = member.page->position.load(std::memory_order_relaxed);
      if (last == nullptr || position < last_position) {
        last = &member;
        last_position = position;
      }
    }
    if (last != nullptr) blockers |= last->bells;
  }
  return blockers;
}

uint64_t SlotTable::Held(const Member& member, uint64_t position) const {
  uint64_t held = 0;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    const Slot& entry = table_[slot];
    if (entry.state == State::kReady && entry.step < position && member.Needs(slot, entry.step) &&
        !member.HasReleased(slot, entry.step)) {
      held |= uint64_t{1} << slot;
    }
  }
  return held;
}

uint64_t SlotTable::FirstNeeded(const Member& member) const {
  uint64_t first = std::max(published_, member.start);
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    const Slot& entry = table_[slot];
    if (entry.state == State::kReady && member.Needs(slot, entry.step) &&
        !member.HasReleased(slot, entry.step)) {
      first = std::min(first, entry.step);
    }
  }
  return first;
}

uint64_t SlotTable::FirstUntaken(const Member& member, uint64_t position) const {
  uint64_t first = published_;
  for (uint32_t slot = 0; slot < slots_; ++slot) {
    const Slot& entry = table_[slot];
    const bool is_ahead = member.start <= entry.step && position <= entry.step;
    if (entry.state == State::kReady && is_ahead && entry.step < member.stop &&
        !member.HasReleased(slot, entry.step)) {
      first = std::min(first, entry.step);
    }
  }
  return first;
}

uint64_t SlotTable::TailNeeded(const Member& member) const {
  uint64_t tail = std::max(published_, member.start == kNoStep ? 0 : member.start);
  while (tail > 0) {
    uint32_t slot = 0;
    while (slot < slots_ &&
           (table_[slot].state != State::kReady || table_[slot].step != tail - 1)) {
      ++slot;
    }
    if (slot == slots_ || !member.Needs(slot, tail - 1) || member.HasReleased(slot, tail - 1)) {
      break;
    }
    --tail;
  }
  return tail;
}

}  // namespace penstock::ring
