// The variable memory of a claimed slot, handed out from its beginning to the row that is alone in
// the slot's step.
//
// Threads:  one at a time.
// Owns:     nothing; the slot is the step's.
#pragma once

#include <cstdint>

#include "base/lone_row_room.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

class SlotRoom final : public LoneRowRoom {
 public:
  // Of no slot, and from the beginning.
  void Reset() {
    slot_ = nullptr;
    end_ = 0;
  }
  // Of this one, which must outlive what is done here.
  void In(const ClaimedSlot& slot) { slot_ = &slot; }

  // Null where the slot is too small, too: who lays the row there says so.
  uint8_t* Take(uint64_t bytes) override;

  // Whether these bytes lie in what Take() gave.
  bool Has(const uint8_t* bytes, uint64_t size) const;
  // Where they do, counted from the slot's variable memory.
  uint64_t OffsetOf(const uint8_t* bytes) const { return bytes - slot_->variable; }
  // Where the first part behind them may lie.
  uint64_t end() const { return end_; }

 private:
  const ClaimedSlot* slot_ = nullptr;
  uint64_t end_ = 0;
};

}  // namespace penstock
