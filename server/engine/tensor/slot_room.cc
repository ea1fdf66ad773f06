#include "server/engine/tensor/slot_room.h"

#include "server/engine/tensor/part_places.h"

namespace penstock {

uint8_t* SlotRoom::Take(uint64_t bytes) {
  if (slot_ == nullptr || slot_->variable == nullptr || end_ > slot_->variable_bytes ||
      bytes > slot_->variable_bytes - end_)
    return nullptr;
  if (slot_->grows != nullptr) slot_->grows->MakeRoom(slot_->slot, end_ + bytes);
  uint8_t* const at = slot_->variable + end_;
  end_ = NextPart(end_ + bytes);
  return at;
}

bool SlotRoom::Has(const uint8_t* bytes, uint64_t size) const {
  return slot_ != nullptr && slot_->variable != nullptr && bytes >= slot_->variable &&
         bytes + size <= slot_->variable + end_;
}

}  // namespace penstock
