#include "ring/consumer_table.h"

#include <algorithm>
#include <utility>

namespace penstock::ring {

int ConsumerTable::FreeIndex() const {
  uint64_t taken = 0;
  for (const Member& member : members_) taken |= uint64_t{1} << member.index;
  for (uint32_t index = 0; index < kMaxConsumers; ++index) {
    if ((taken >> index & 1) == 0) return static_cast<int>(index);
  }
  return -1;
}

void ConsumerTable::Add(Consumer consumer, uint32_t index, uint64_t start_step) {
  members_.push_back({&consumer.page->page(), index, start_step, kNeverStops});
  consumers_.push_back(std::move(consumer));
}

Consumer ConsumerTable::Remove(uint32_t id) {
  const auto found = std::find_if(consumers_.begin(), consumers_.end(),
                                  [id](const Consumer& consumer) { return consumer.id == id; });
  if (found == consumers_.end()) return {};
  members_.erase(members_.begin() + (found - consumers_.begin()));
  Consumer removed = std::move(*found);
  consumers_.erase(found);
  return removed;
}

std::span<const Member> ConsumerTable::Members() {
  for (Member& member : members_) {
    if (member.stop == kNeverStops) {
      member.stop = member.page->stop_at.load(std::memory_order_seq_cst);
    }
  }
  return members_;
}

uint32_t ConsumerTable::TakeSleepers(uint64_t published, bool everybody) {
  uint32_t bits = 0;
  for (const Member& member : members_) {
    std::atomic<uint64_t>& wake_at = consumers_[&member - members_.data()].page->page().wake_at;
    // SYNC consumer-wake: after the store to `published`, as the consumer looks there after its
    // own.
    uint64_t wanted = wake_at.load(std::memory_order_seq_cst);
    if (wanted == kAwake || (!everybody && published < wanted)) continue;
    // Fails only when the consumer has woken up by itself, and then it looks again.
    if (wake_at.compare_exchange_strong(wanted, kAwake, std::memory_order_seq_cst)) {
      bits |= uint32_t{1} << (member.index % 32);
    }
  }
  return bits;
}

}  // namespace penstock::ring
