#include "cuda/pinned_range.h"

namespace penstock::cuda {

using ring::Code;
using ring::Status;

Status PinnedRange::Register(std::shared_ptr<const Device> device, const void* memory,
                             uint64_t bytes, bool read_only, std::unique_ptr<PinnedRange>* out) {
  unsigned flags = kHostRegisterPortable;
  if (read_only && device->Attribute(kAttributeReadOnlyHostRegister) != 0) {
    flags |= kHostRegisterReadOnly;
  } else if (read_only && device->Attribute(kAttributeHostPageTables) == 0) {
    // One that goes by the host's page tables sees there what it may not write, and needs no flag.
    return {Code::kUnimplemented, "the device does not register memory that is mapped read-only"};
  }
  // CUDA takes a pointer to what it may write; with the flag it does not.
  void* const writable = const_cast<void*>(memory);
  {
    const Entered entered(*device);
    const Result result = device->driver().MemHostRegister(writable, bytes, flags);
    if (Status status = device->Check(result, "memory cannot be registered"); !status.ok()) {
      return status;
    }
  }
  out->reset(new PinnedRange(std::move(device), writable));
  return {};
}

PinnedRange::~PinnedRange() {
  const Entered entered(*device_);
  device_->driver().MemHostUnregister(memory_);
}

}  // namespace penstock::cuda
