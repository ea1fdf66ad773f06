#include "cuda/shared_memory.h"

#include <fcntl.h>

#include <string>
#include <utility>

namespace penstock::cuda {

using ring::Code;
using ring::Status;

namespace {

// Smaller pieces the driver takes out of a block of this size, and a handle opens the whole block:
// what else lies in it would be shared too.
constexpr uint64_t kHandleBlock = 2 << 20;

// As a driver's function takes a descriptor: in the pointer itself.
void* AsHandle(int descriptor) {
  return reinterpret_cast<void*>(static_cast<intptr_t>(descriptor));
}

}  // namespace

bool SharedMemory::HasDescriptors() const {
  return device_->Attribute(kAttributeVirtualMemory) > 0 &&
         device_->Attribute(kAttributeDescriptors) > 0;
}

AllocationProperties SharedMemory::Properties() const {
  AllocationProperties properties = {};
  properties.type = kAllocationPinned;
  properties.handle_types = kHandleDescriptor;
  properties.location = {kLocationDevice, device_->number()};
  return properties;
}

Status SharedMemory::Map(uint64_t bytes) {
  const Driver& driver = device_->driver();
  Address address = 0;
  Status status = device_->Check(driver.MemAddressReserve(&address, bytes, 0, 0, 0),
                                 "no addresses for the device's memory");
  if (!status.ok()) return status;
  status = device_->Check(driver.MemMap(address, bytes, 0, allocation_, 0),
                          "the device's memory cannot be mapped");
  if (!status.ok()) {
    driver.MemAddressFree(address, bytes);
    return status;
  }
  kind_ = Kind::kMapped;
  address_ = address;
  bytes_ = bytes;
  const AccessDescription access = {{kLocationDevice, device_->number()}, kAccessReadWrite};
  return device_->Check(driver.MemSetAccess(address, bytes, &access, 1),
                        "the device may not use its memory");
}

Status SharedMemory::AllocateWithDescriptor(uint64_t bytes) {
  const Driver& driver = device_->driver();
  const AllocationProperties properties = Properties();
  size_t granularity = 0;
  Status status = device_->Check(driver.MemGetAllocationGranularity(&granularity, &properties, 0),
                                 "the device's granularity cannot be asked for");
  if (!status.ok()) return status;
  if (granularity == 0 || bytes > UINT64_MAX - granularity) {
    return {Code::kResourceExhausted, "the device's memory cannot be had: it is too large"};
  }
  const uint64_t rounded = (bytes + granularity - 1) / granularity * granularity;
  status = device_->Check(driver.MemCreate(&allocation_, rounded, &properties, 0),
                          "the device's memory cannot be had");
  if (!status.ok()) {
    allocation_ = 0;
    return status;
  }
  int descriptor = -1;
  status = device_->Check(
      driver.MemExportToShareableHandle(&descriptor, allocation_, kHandleDescriptor, 0),
      "the device's memory cannot be shared");
  if (!status.ok()) return status;
  descriptor_ = ring::Descriptor(descriptor);
  // A program that is started later must not keep the memory.
  if (fcntl(descriptor, F_SETFD, FD_CLOEXEC) != 0) {
    return {Code::kUnavailable, "the descriptor of the device's memory cannot be kept private"};
  }
  return Map(rounded);
}

Status SharedMemory::Allocate(uint64_t bytes) {
  if (bytes > UINT64_MAX - kHandleBlock) {
    return {Code::kResourceExhausted, "the device's memory cannot be had: it is too large"};
  }
  const uint64_t rounded = (bytes + kHandleBlock - 1) / kHandleBlock * kHandleBlock;
  Status status = device_->Check(device_->driver().MemAlloc(&address_, rounded),
                                 "the device's memory cannot be had");
  if (!status.ok()) {
    address_ = 0;
    return status;
  }
  kind_ = Kind::kAllocated;
  bytes_ = rounded;
  return {};
}

Status SharedMemory::Create(std::shared_ptr<const Device> device, uint64_t bytes,
                            std::unique_ptr<SharedMemory>* out) {
  const Entered entered(*device);
  std::unique_ptr<SharedMemory> made(new SharedMemory(device));
  Status status;
  if (made->HasDescriptors()) {
    status = made->AllocateWithDescriptor(bytes);
    if (status.ok() || status.code == Code::kResourceExhausted) {
      if (status.ok()) *out = std::move(made);
      return status;
    }
    // A driver in a container may offer what it is not allowed to do there.
    made.reset(new SharedMemory(device));
  }
  status = made->Allocate(bytes);
  if (status.ok()) *out = std::move(made);
  return status;
}

Status SharedMemory::Open(std::shared_ptr<const Device> device, const IpcMemory& handle,
                          std::unique_ptr<SharedMemory>* out) {
  const Entered entered(*device);
  std::unique_ptr<SharedMemory> made(new SharedMemory(device));
  Status status =
      device->Check(device->driver().IpcOpenMemHandle(&made->address_, handle, kIpcLazyPeerAccess),
                    "the device memory that penstockd shares cannot be opened");
  if (!status.ok()) return status;
  made->kind_ = Kind::kOpenedByHandle;
  *out = std::move(made);
  return {};
}

Status SharedMemory::Open(std::shared_ptr<const Device> device, int descriptor, uint64_t bytes,
                          std::unique_ptr<SharedMemory>* out) {
  const Entered entered(*device);
  std::unique_ptr<SharedMemory> made(new SharedMemory(device));
  Status status = device->Check(device->driver().MemImportFromShareableHandle(
                                    &made->allocation_, AsHandle(descriptor), kHandleDescriptor),
                                "the device memory that penstockd shares cannot be opened");
  if (!status.ok()) {
    made->allocation_ = 0;
    return status;
  }
  status = made->Map(bytes);
  if (status.ok()) *out = std::move(made);
  return status;
}

Status SharedMemory::Handle(IpcMemory* out) const {
  const Entered entered(*device_);
  return device_->Check(device_->driver().IpcGetMemHandle(out, address_),
                        "the device's memory cannot be shared");
}

SharedMemory::~SharedMemory() {
  const Entered entered(*device_);
  const Driver& driver = device_->driver();
  switch (kind_) {
    case Kind::kNone:
      break;
    case Kind::kAllocated:
      driver.MemFree(address_);
      break;
    case Kind::kOpenedByHandle:
      driver.IpcCloseMemHandle(address_);
      break;
    case Kind::kMapped:
      driver.MemUnmap(address_, bytes_);
      driver.MemAddressFree(address_, bytes_);
      break;
  }
  if (allocation_ != 0) driver.MemRelease(allocation_);
}

}  // namespace penstock::cuda
