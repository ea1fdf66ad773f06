#include "client/c/device_slots.h"

#include <unistd.h>

#include <cstring>
#include <string>

#include "ring/segment_plan.h"

namespace penstock_client {

using penstock::cuda::Device;
using penstock::cuda::Entered;
using penstock::cuda::Event;
using penstock::cuda::IpcEvent;
using penstock::cuda::IpcMemory;
using penstock::cuda::SharedMemory;
using penstock::ring::Code;
using penstock::ring::DeviceTable;
using penstock::ring::DeviceTensor;
using penstock::ring::Status;

namespace {

Status Malformed(const char* what) {
  return {Code::kInternal,
          std::string("the device's table that penstockd sent is malformed: ") + what};
}

// Whether the tensor lies inside of a slot and its shape is that of its bytes.
bool IsSound(const DeviceTensor& tensor, uint64_t slot_bytes) {
  if (tensor.on_device == 0) return true;
  if (tensor.ndim > std::size(tensor.shape)) return false;
  uint64_t bytes = penstock::ring::ElementBytes(tensor.dtype);
  if (bytes == 0) return false;
  for (uint32_t axis = 0; axis < tensor.ndim; ++axis) {
    if (tensor.shape[axis] < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(tensor.shape[axis]), &bytes)) {
      return false;
    }
  }
  return bytes == tensor.bytes && tensor.offset <= slot_bytes &&
         bytes <= slot_bytes - tensor.offset &&
         (tensor.ndim == 0 || tensor.shape[0] == 0 ||
          tensor.row_bytes == bytes / static_cast<uint64_t>(tensor.shape[0]));
}

std::string VersionText(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

// An error of opening what the daemon gave; two drivers of different versions are a reason.
Status OpenError(const Status& error, const DeviceTable& table, const Device& device) {
  if (table.driver_version == device.driver_version()) return error;
  return {Code::kFailedPrecondition,
          error.message + "; the daemon's CUDA driver is of version " +
              VersionText(table.driver_version) + ", this process's of " +
              VersionText(device.driver_version()) + ": let both use the same"};
}

}  // namespace

Status DeviceSlots::Open(std::shared_ptr<const Device> device, int table_fd, int memory_fd,
                         size_t num_tensors, uint32_t slots, std::unique_ptr<DeviceSlots>* out) {
  DeviceTable table;
  if (pread(table_fd, &table, sizeof table, 0) != sizeof table) return Malformed("it is too small");
  if (table.magic != penstock::ring::kDeviceMagic) return Malformed("it begins with other bytes");
  if (table.version != penstock::ring::kDeviceVersion || table.table_bytes != sizeof table ||
      table.tensor_bytes != sizeof(DeviceTensor)) {
    return {Code::kFailedPrecondition,
            "client and penstockd speak different versions of the device's table: the client " +
                std::to_string(penstock::ring::kDeviceVersion) + ", the daemon " +
                std::to_string(table.version) + "; install the same release of both"};
  }
  uint64_t bytes = 0;
  if (table.num_tensors != num_tensors || table.slots != slots ||
      slots > penstock::ring::kMaxSlots ||
      __builtin_mul_overflow(table.slot_stride, uint64_t{table.slots}, &bytes) ||
      bytes != table.memory_bytes ||
      (table.mapped_bytes != 0 && table.mapped_bytes < table.memory_bytes)) {
    return Malformed("its sizes are not those of the ring");
  }
  std::unique_ptr<DeviceSlots> made(new DeviceSlots(device));
  made->tensors_.resize(num_tensors);
  made->slot_stride_ = table.slot_stride;
  const size_t tensors_bytes = num_tensors * sizeof(DeviceTensor);
  if (pread(table_fd, made->tensors_.data(), tensors_bytes, sizeof table) !=
      static_cast<ssize_t>(tensors_bytes)) {
    return Malformed("it is too small for its tensors");
  }
  for (const DeviceTensor& tensor : made->tensors_) {
    if (!IsSound(tensor, table.slot_stride)) return Malformed("a tensor lies outside of its slot");
  }
  if (std::memcmp(table.uuid, device->uuid().bytes, sizeof table.uuid) != 0) {
    return {Code::kFailedPrecondition,
            "the ring is on another CUDA device than the one that was opened (device " +
                std::to_string(device->ordinal()) + ")"};
  }
  if (table.mapped_bytes != 0 && memory_fd < 0)
    return Malformed("the memory's descriptor is missing");
  IpcMemory handle;
  std::memcpy(handle.bytes, table.memory, sizeof handle.bytes);
  const Status opened =
      table.mapped_bytes != 0
          ? SharedMemory::Open(device, memory_fd, table.mapped_bytes, &made->memory_)
          : SharedMemory::Open(device, handle, &made->memory_);
  if (!opened.ok()) return OpenError(opened, table, *device);
  for (uint32_t slot = 0; slot < slots; ++slot) {
    IpcEvent event;
    std::memcpy(event.bytes, table.events[slot], sizeof event.bytes);
    const Status status = Event::Open(device, event, &made->events_.emplace_back());
    if (!status.ok()) {
      made->events_.pop_back();
      return OpenError(status, table, *device);
    }
  }
  *out = std::move(made);
  return {};
}

DeviceSlots::~DeviceSlots() {
  const Entered entered(*device_);
  events_.clear();
  memory_.reset();
}

}  // namespace penstock_client
