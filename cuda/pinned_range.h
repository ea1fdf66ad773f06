// A range of memory that is mapped in this process, registered with CUDA, so that copies from it
// need no other copy and no processor.
//
// Threads:  any, one at a time.
// Owns:     the registration, which ends with it and before the mapping does.
// Limits:   ranges do not overlap; whole pages.
// Cost:     pins each page: some milliseconds for 100 MiB, once.
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device.h"
#include "ring/status.h"

namespace penstock::cuda {

class PinnedRange {
 public:
  // `read_only`: it is mapped to be read only. A device that cannot register such memory refuses.
  static ring::Status Register(std::shared_ptr<const Device> device, const void* memory,
                               uint64_t bytes, bool read_only, std::unique_ptr<PinnedRange>* out);
  ~PinnedRange();
  PinnedRange(const PinnedRange&) = delete;
  PinnedRange& operator=(const PinnedRange&) = delete;

 private:
  PinnedRange(std::shared_ptr<const Device> device, void* memory)
      : device_(std::move(device)), memory_(memory) {}

  const std::shared_ptr<const Device> device_;
  void* const memory_;
};

}  // namespace penstock::cuda
