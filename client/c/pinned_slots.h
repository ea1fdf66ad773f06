// The slots of a mapped ring that were registered with CUDA: each once, when something is first
// copied out of it. A ring has address space for more slots than it uses, which must not be pinned.
//
// Threads:  any.
// Owns:     the registrations; the mapping outlives them.
// Cost:     Pin() of a slot that is pinned: a lock and a look.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/device.h"
#include "cuda/pinned_range.h"
#include "ring/status.h"

namespace penstock_client {

class PinnedSlots {
 public:
  // Registers the slot at `slot`, for all devices. `pinned_bytes` receives what was added.
  penstock::ring::Status Pin(const std::shared_ptr<const penstock::cuda::Device>& device,
                             const uint8_t* slot, uint64_t bytes, uint64_t* pinned_bytes);

 private:
  std::mutex mutex_;
  // Under mutex_.
  std::map<const uint8_t*, std::unique_ptr<penstock::cuda::PinnedRange>> ranges_;
};

}  // namespace penstock_client
