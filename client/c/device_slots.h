// A ring's slots in a device's memory, opened by the handles that the daemon gave.
//
// Threads:  constant after Open().
// Owns:     the mapping of the memory and the events; work on them has ended before.
// Cost:     Open() some milliseconds; Look() a call of the driver.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cuda/device.h"
#include "cuda/event.h"
#include "cuda/shared_memory.h"
#include "ring/device_layout.h"
#include "ring/status.h"

namespace penstock_client {

class DeviceSlots {
 public:
  // The descriptors stay the caller's; that of the memory is negative where none was sent.
  // `num_tensors`, `slots`: of the ring in shared memory.
  static penstock::ring::Status Open(std::shared_ptr<const penstock::cuda::Device> device,
                                     int table_fd, int memory_fd, size_t num_tensors,
                                     uint32_t slots, std::unique_ptr<DeviceSlots>* out);
  ~DeviceSlots();
  DeviceSlots(const DeviceSlots&) = delete;
  DeviceSlots& operator=(const DeviceSlots&) = delete;

  const penstock::ring::DeviceTensor& tensor(uint32_t index) const { return tensors_[index]; }
  penstock::cuda::Address Find(uint32_t slot, uint32_t index) const {
    return memory_->address() + slot * slot_stride_ + tensors_[index].offset;
  }
  // Whether the daemon's copy into the slot is over.
  penstock::cuda::Event::State Look(uint32_t slot, penstock::ring::Status* error) const {
    return events_[slot]->Look(error);
  }

 private:
  explicit DeviceSlots(std::shared_ptr<const penstock::cuda::Device> device)
      : device_(std::move(device)) {}

  const std::shared_ptr<const penstock::cuda::Device> device_;
  std::vector<penstock::ring::DeviceTensor> tensors_;
  std::vector<std::unique_ptr<penstock::cuda::Event>> events_;
  uint64_t slot_stride_ = 0;
  std::unique_ptr<penstock::cuda::SharedMemory> memory_;
};

}  // namespace penstock_client
