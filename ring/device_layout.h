// The slots of a ring in a device's memory, as a client that asked for them is told: a sealed
// memory file, the fourth descriptor of an attach reply (ring/attach.h).
//
//   DeviceTable                 what memory, on which device, and the handles by which CUDA opens
//                               it
//   DeviceTensor[num_tensors]   where each tensor lies in a slot, and what it is there
//
// Step s of slot n is on the device when the event of slot n is over, which was recorded before the
// step was published: a consumer looks at it (cuEventQuery), reads, and releases the slot, by the
// ring's control page, when its reading is done. A stream should not wait for it
// (cuStreamWaitEvent): a daemon that is killed leaves events that are never over. Slots, leases and
// steps are those of the segment.
//
// Handles are CUDA's own, 64 bytes each. The memory is opened by one, or by a descriptor, which is
// then the reply's fifth. Whoever holds either may write the memory: they are given to processes of
// the daemon's own user only.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ring/layout.h"

namespace penstock::ring {

inline constexpr uint64_t kDeviceMagic = 0x5645444b54534e50;  // "PNSTKDEV"
inline constexpr uint32_t kDeviceVersion = 2;
inline constexpr size_t kDeviceHandleBytes = 64;

//   0     magic │ version, table_bytes │ uuid │ driver_version, num_tensors
//   40    slots, tensor_bytes │ slot_stride │ memory_bytes │ mapped_bytes │ zeros
//   128   memory │ 192: events[64]
struct DeviceTable {
  uint64_t magic;
  uint32_t version;
  uint32_t table_bytes;
  uint8_t uuid[16];
  int32_t driver_version;  // of the daemon: 12080 is CUDA 12.8
  uint32_t num_tensors;    // those of the segment, in their order
  uint32_t slots;
  uint32_t tensor_bytes;
  uint64_t slot_stride;
  uint64_t memory_bytes;
  // What the descriptor maps, at least memory_bytes; 0: there is none, but `memory`
  uint64_t mapped_bytes;
  uint64_t reserved[7];
  uint8_t memory[kDeviceHandleBytes];
  uint8_t events[kMaxSlots][kDeviceHandleBytes];  // those of slots in use
};
static_assert(offsetof(DeviceTable, slots) == 40 && offsetof(DeviceTable, memory) == 128 &&
              offsetof(DeviceTable, events) == 192 && sizeof(DeviceTable) == 4288);

struct DeviceTensor {
  uint32_t on_device;  // 0: it is in shared memory only, as all that is not fixed
  uint8_t dtype;       // TensorDType
  uint8_t reserved_0[3];
  uint64_t offset;  // from the slot's first byte on the device
  uint64_t bytes;
  uint64_t row_bytes;  // 0 where it has no rows
  uint32_t ndim;
  uint32_t reserved_1;
  int64_t shape[kMaxDims + 1];  // of a full batch; one_hot adds an axis
  uint64_t reserved_2[2];
};
static_assert(offsetof(DeviceTensor, shape) == 40 && sizeof(DeviceTensor) == 192);

}  // namespace penstock::ring
