#include "client/c/pinned_slots.h"

namespace penstock_client {

penstock::ring::Status PinnedSlots::Pin(const std::shared_ptr<const penstock::cuda::Device>& device,
                                        const uint8_t* slot, uint64_t bytes,
                                        uint64_t* pinned_bytes) {
  std::lock_guard<std::mutex> lock(mutex_);
  *pinned_bytes = 0;
  if (ranges_.contains(slot)) return {};
  std::unique_ptr<penstock::cuda::PinnedRange> range;
  penstock::ring::Status status =
      penstock::cuda::PinnedRange::Register(device, slot, bytes, /*read_only=*/true, &range);
  if (!status.ok()) return status;
  ranges_[slot] = std::move(range);
  *pinned_bytes = bytes;
  return {};
}

}  // namespace penstock_client
