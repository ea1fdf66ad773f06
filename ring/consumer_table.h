// The consumers that are attached to one ring.
//
// Threads:  one at a time (the writer's mutex); the control pages' words may change under it.
// Owns:     the consumers' control pages and bells.
// Limits:   kMaxConsumers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ring/control_page.h"
#include "ring/slot_table.h"

namespace penstock::ring {

struct Consumer {
  uint32_t id = 0;
  int32_t pid = 0;
  std::string group;
  std::unique_ptr<ConsumerPage> page;
};

class ConsumerTable {
 public:
  // An index that no consumer has, or -1 when all are taken.
  int FreeIndex() const;
  void Add(Consumer consumer, uint32_t index, uint64_t start_step);
  // The consumer that was removed; its page is null when there is none of that id.
  Consumer Remove(uint32_t id);

  // Takes over the first stop that each consumer has written, and returns the members for
  // SlotTable.
  std::span<const Member> Members();

  // The wait bits of the sleeping consumers that have got what they wait for, or of all sleeping
  // ones; marks them as awake.
  uint32_t TakeSleepers(uint64_t published, bool everybody);

  uint32_t size() const { return static_cast<uint32_t>(consumers_.size()); }
  const Consumer& consumer(uint32_t i) const { return consumers_[i]; }
  const Member& member(uint32_t i) const { return members_[i]; }

 private:
  std::vector<Consumer> consumers_;
  std::vector<Member> members_;  // one for each of consumers_
};

}  // namespace penstock::ring
