// The slots of a ring once more in a device's memory: one copy a step, on a stream of the daemon's
// own, and what the spec has the device make of it. Trainers of the same user read it in place
// (ring/device_layout.h).
//
//   host slot n ──copy──► [ tensors as they are │ expanded tensors ] of device slot n
//                          └──────── kernels ────────┘      then event n is recorded
//
// A host slot is not written again before the event of its last copy is over, and a device slot not
// before its readers have released it, which the ring sees to.
//
// Threads:  Copy() and Look() one at a time.
// Owns:     device memory, stream and events. The host slots are the caller's and outlive it.
// Limits:   as many slots as the ring has from the beginning on; they do not grow.
// Cost:     Copy() enqueues: some microseconds, and as many for each expansion. Create() makes the
//           device's context where the daemon has none yet: tenths of a second.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/event.h"
#include "cuda/expansion.h"
#include "cuda/pinned_range.h"
#include "cuda/shared_memory.h"
#include "ring/descriptor.h"
#include "ring/status.h"
#include "server/engine/tensor/batch_sink.h"

namespace penstock {

struct DeviceRingOptions {
  int32_t device = 0;
  std::vector<BatchTensor> tensors;
  std::vector<std::optional<cuda::Expansion>> expansions;  // one for each tensor
  // Where the fixed tensors of each slot lie in this process: [slot][tensor], null for others.
  std::vector<std::vector<const uint8_t*>> slots;
  std::string library = cuda::DriverLibrary();
  std::span<const uint8_t> kernels = cuda::Kernels();
};

class DeviceRing {
 public:
  // kFailedPrecondition without a driver or a device, kNotFound for a device that is not there,
  // kResourceExhausted, with both figures, when the device's memory does not hold the slots.
  static ring::Status Create(const DeviceRingOptions& options, std::unique_ptr<DeviceRing>* out);
  ~DeviceRing();
  DeviceRing(const DeviceRing&) = delete;
  DeviceRing& operator=(const DeviceRing&) = delete;

  // Enqueues the copy of a filled slot. An error is the device's and comes again.
  ring::Status Copy(uint32_t slot);
  // Whether the slot's last copy is over.
  cuda::Event::State Look(uint32_t slot, ring::Status* error) const;

  // What clients receive; the ring's own.
  int table_fd() const { return table_.get(); }
  int memory_fd() const { return memory_->descriptor(); }
  uint64_t memory_bytes() const { return memory_->bytes(); }
  // Why copies go through memory that is not pinned; "" when they do not.
  const std::string& not_pinned() const { return not_pinned_; }

 private:
  struct Tensor {
    bool on_device = false;
    ring::TensorDType dtype = ring::TensorDType::kUint8;
    std::vector<int64_t> shape;
    uint64_t bytes = 0;
    uint64_t copied_to = 0;  // from the slot's first byte on the device
    std::optional<cuda::Expansion> expansion;
    uint64_t expanded_to = 0;
    std::unique_ptr<cuda::ReadyExpansion> ready;
  };

  explicit DeviceRing(std::shared_ptr<const cuda::Device> device) : device_(std::move(device)) {}
  ring::Status PlaceTensors(const DeviceRingOptions& options);
  ring::Status Allocate();
  ring::Status PrepareExpansions(std::span<const uint8_t> kernels);
  void Pin();
  ring::Status WriteTable();

  const std::shared_ptr<const cuda::Device> device_;
  std::unique_ptr<cuda::Expander> expander_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<const uint8_t*>> slots_;
  // The part of a slot that is copied, from its first fixed tensor's first byte on.
  std::vector<const uint8_t*> copied_from_;
  uint64_t copied_bytes_ = 0;
  uint64_t slot_stride_ = 0;
  uint64_t memory_bytes_ = 0;
  std::unique_ptr<cuda::SharedMemory> memory_;
  cuda::StreamHandle stream_ = nullptr;
  std::vector<std::unique_ptr<cuda::Event>> events_;
  std::vector<std::unique_ptr<cuda::PinnedRange>> pinned_;
  std::string not_pinned_;
  ring::Descriptor table_;
};

}  // namespace penstock
