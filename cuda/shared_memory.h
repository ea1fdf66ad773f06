// Device memory that other processes open: by a file descriptor where the device can make one
// (virtual memory management), else by a 64-byte handle of CUDA IPC.
//
// A descriptor is worth more than a handle: only who was sent it over a socket has it, it opens the
// memory in a container with a PID namespace of its own too, and nobody can guess it. Writable is
// either.
//
// Threads:  constant after Create() and Open().
// Owns:     the memory, or its mapping here; the driver keeps memory until the last process has let
//           go of it.
// Limits:   memory by descriptor is a multiple of the device's granularity, 2 MiB on those of
//           today; by handle of 2 MiB, since CUDA shares the whole block out of which it has taken
//           a smaller piece.
// Source:   CUDA Driver API, "Virtual Memory Management" and "Unified Addressing".
#pragma once

#include <cstdint>
#include <memory>

#include "cuda/device.h"
#include "ring/descriptor.h"
#include "ring/status.h"

namespace penstock::cuda {

class SharedMemory {
 public:
  // At least `bytes`. kResourceExhausted where the device has too little in one piece.
  static ring::Status Create(std::shared_ptr<const Device> device, uint64_t bytes,
                             std::unique_ptr<SharedMemory>* out);
  // Another process's, by what its Create() gave out. `descriptor` stays the caller's.
  static ring::Status Open(std::shared_ptr<const Device> device, const IpcMemory& handle,
                           std::unique_ptr<SharedMemory>* out);
  static ring::Status Open(std::shared_ptr<const Device> device, int descriptor, uint64_t bytes,
                           std::unique_ptr<SharedMemory>* out);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  Address address() const { return address_; }
  // What the device gave: at least what was asked for.
  uint64_t bytes() const { return bytes_; }
  // What others open it by: the descriptor where this is not negative, else the handle.
  int descriptor() const { return descriptor_.get(); }
  ring::Status Handle(IpcMemory* out) const;

 private:
  enum class Kind : uint8_t { kNone, kAllocated, kOpenedByHandle, kMapped };

  explicit SharedMemory(std::shared_ptr<const Device> device) : device_(std::move(device)) {}
  // Whether its memory can be shared by descriptors.
  bool HasDescriptors() const;
  AllocationProperties Properties() const;
  ring::Status Allocate(uint64_t bytes);
  ring::Status AllocateWithDescriptor(uint64_t bytes);
  // Gives the allocation an address here that the device may use.
  ring::Status Map(uint64_t bytes);

  const std::shared_ptr<const Device> device_;
  Kind kind_ = Kind::kNone;
  Address address_ = 0;
  uint64_t bytes_ = 0;
  AllocationHandle allocation_ = 0;
  ring::Descriptor descriptor_;
};

}  // namespace penstock::cuda
