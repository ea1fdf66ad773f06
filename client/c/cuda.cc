#include "client/c/cuda.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "client/c/error.h"
#include "client/c/loader.h"
#include "client/c/penstock_cuda.h"
#include "client/c/source.h"
#include "ring/futex.h"

namespace {

using penstock::cuda::Address;
using penstock::cuda::Device;
using penstock::cuda::Entered;
using penstock::cuda::Event;
using penstock::ring::Code;
using penstock::ring::MonotonicNs;
using penstock::ring::Status;
using penstock_client::Fail;
using penstock_client::Guarded;
using penstock_client::Source;

// Large enough that a copy's start does not matter, and small enough that the next one is filled
// meanwhile.
constexpr uint64_t kStagingBytes = 4 << 20;
constexpr size_t kStagingBuffers = 4;
// A device that has not ended a copy of 4 MiB by then will not.
constexpr uint64_t kStagingWaitNs = 30'000'000'000;
constexpr uint64_t kCloseWaitNs = 1'000'000'000;

// Sleeps for about as long as a copy takes.
void Doze() {
  const timespec time = {0, 20'000};
  ppoll(nullptr, 0, &time, nullptr);
}

// Takes out what is done; all that there is when the device has failed. Under the mutex.
Status TakeDone(penstock_cuda* cuda, std::vector<penstock_cuda::Pending>* done) {
  Status failed;
  for (size_t i = 0; i < cuda->pending.size();) {
    penstock_cuda::Pending& one = cuda->pending[i];
    Status error;
    const Event::State state = failed.ok() ? one.event->Look(&error) : Event::State::kOver;
    if (state == Event::State::kFailed) {
      // Nothing is read any more by a device that is lost; what was found waiting before is free
      // too.
      failed = error;
      i = 0;
      continue;
    }
    if (state == Event::State::kWaits) {
      ++i;
      continue;
    }
    done->push_back(std::move(one));
    cuda->pending.erase(cuda->pending.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return failed;
}

// Calls what is done, without the mutex, and keeps the events.
Status CallDone(penstock_cuda* cuda, uint64_t* pending) {
  std::vector<penstock_cuda::Pending> done;
  Status status;
  {
    std::lock_guard<std::mutex> lock(cuda->mutex);
    // So that what is taken out is called, whether there is memory or not.
    done.reserve(cuda->pending.size());
    status = TakeDone(cuda, &done);
    *pending = cuda->pending.size();
  }
  for (const penstock_cuda::Pending& one : done) one.done(one.argument);
  if (done.empty()) return status;
  std::lock_guard<std::mutex> lock(cuda->mutex);
  for (penstock_cuda::Pending& one : done) cuda->spare_events.push_back(std::move(one.event));
  return status;
}

void ReleaseBatch(void* batch) { penstock_batch_release(static_cast<penstock_batch*>(batch)); }

// Waits until a staging buffer is free. Under the mutex.
Status TakeStaging(penstock_cuda* cuda, penstock_cuda::Staging** out) {
  if (cuda->staging.size() < kStagingBuffers) {
    penstock_cuda::Staging made;
    const Entered entered(*cuda->device);
    Status status =
        cuda->device->Check(cuda->device->driver().MemHostAlloc(&made.memory, kStagingBytes,
                                                                penstock::cuda::kHostAllocPortable),
                            "no pinned memory for staging");
    if (!status.ok()) return status;
    status = Event::Create(cuda->device, 0, &made.event);
    if (!status.ok()) {
      cuda->device->driver().MemFreeHost(made.memory);
      return status;
    }
    cuda->staging.push_back(std::move(made));
    *out = &cuda->staging.back();
    return {};
  }
  penstock_cuda::Staging& next = cuda->staging[cuda->next_staging];
  cuda->next_staging = (cuda->next_staging + 1) % cuda->staging.size();
  const uint64_t end_ns = MonotonicNs() + kStagingWaitNs;
  Status error;
  while (true) {
    const Event::State state = next.event->Look(&error);
    if (state == Event::State::kOver) break;
    if (state == Event::State::kFailed) return error;
    if (MonotonicNs() >= end_ns) {
      return {Code::kUnavailable, "the device did not end a copy within 30 seconds"};
    }
    Doze();
  }
  *out = &next;
  return {};
}

// A copy through pinned memory, which has left `from` when it returns.
Status CopyStaged(penstock_cuda* cuda, const void* from, uint64_t bytes, Address to, void* stream) {
  std::lock_guard<std::mutex> lock(cuda->mutex);
  const auto* next = static_cast<const uint8_t*>(from);
  for (uint64_t left = bytes; left > 0;) {
    penstock_cuda::Staging* staging = nullptr;
    if (Status status = TakeStaging(cuda, &staging); !status.ok()) return status;
    const uint64_t part = std::min(left, kStagingBytes);
    std::memcpy(staging->memory, next, part);
    {
      const Entered entered(*cuda->device);
      const Status status = cuda->device->Check(
          cuda->device->driver().MemcpyHtoDAsync(to, staging->memory, part, stream),
          "the copy to the device failed");
      if (!status.ok()) return status;
    }
    if (Status status = staging->event->Record(stream); !status.ok()) return status;
    next += part;
    to += part;
    left -= part;
  }
  ++cuda->stats.staged_copies;
  cuda->stats.staged_bytes += bytes;
  return {};
}

// Whether `from` can be copied from where it is.
bool IsPinned(penstock_cuda* cuda, penstock_batch* batch, const void* from, uint64_t bytes) {
  {
    std::lock_guard<std::mutex> lock(cuda->mutex);
    // What was refused once is refused again.
    if (!cuda->why_staged.empty()) return false;
  }
  if (batch == nullptr || batch->is_copy) return false;
  Source* source = batch->source;
  const uint8_t* slot = batch->lease.data;
  const uint64_t stride = source->reader->slot_stride();
  const auto* first = static_cast<const uint8_t*>(from);
  // A rank's own offsets of strings lie elsewhere.
  if (first < slot || first > slot + stride || bytes > stride - (first - slot)) return false;
  uint64_t pinned_bytes = 0;
  const Status status = source->pinned.Pin(cuda->device, slot, stride, &pinned_bytes);
  std::lock_guard<std::mutex> lock(cuda->mutex);
  cuda->stats.pinned_bytes += pinned_bytes;
  if (!status.ok()) cuda->why_staged = status.message;
  return status.ok();
}

// Those that were closed while a device was still reading: their memory stays for as long as the
// process lives, in their hands.
std::atomic<penstock_cuda*> left_behind{nullptr};

void LeaveBehind(penstock_cuda* cuda) {
  cuda->left_before = left_behind.load();
  while (!left_behind.compare_exchange_weak(cuda->left_before, cuda)) {
  }
}

}  // namespace

extern "C" {

int penstock_cuda_open(int32_t device, penstock_cuda** cuda) {
  penstock_client::LastError().clear();
  *cuda = nullptr;
  return Guarded([&] {
    auto made = std::make_unique<penstock_cuda>();
    const Status status = Device::Open(penstock::cuda::DriverLibrary(), device, &made->device);
    if (!status.ok()) return Fail(status);
    made->has_pools = made->device->Attribute(penstock::cuda::kAttributeMemoryPools) > 0;
    *cuda = made.release();
    return static_cast<int>(PENSTOCK_OK);
  });
}

void penstock_cuda_close(penstock_cuda* cuda) {
  if (cuda == nullptr) return;
  const uint64_t end_ns = MonotonicNs() + kCloseWaitNs;
  // Not known to be none, where there is no memory to look.
  uint64_t pending = 1;
  while (penstock_cuda_poll(cuda, &pending) == PENSTOCK_OK && pending > 0 && MonotonicNs() < end_ns)
    Doze();
  // The device may still read what is pending, or a staging buffer: its memory must not be given
  // back, ever.
  if (pending > 0) return LeaveBehind(cuda);
  for (const penstock_cuda::Staging& one : cuda->staging) {
    Status error;
    while (one.event != nullptr && one.event->Look(&error) == Event::State::kWaits) {
      if (MonotonicNs() >= end_ns) return LeaveBehind(cuda);
      Doze();
    }
  }
  {
    const Entered entered(*cuda->device);
    for (penstock_cuda::Staging& one : cuda->staging) {
      cuda->device->driver().MemFreeHost(one.memory);
    }
  }
  delete cuda;
}

int penstock_cuda_allocate(penstock_cuda* cuda, uint64_t bytes, void* stream, uint64_t* address) {
  return Guarded([&]() -> int {
    const Entered entered(*cuda->device);
    const penstock::cuda::Driver& driver = cuda->device->driver();
    *address = 0;
    const uint64_t least = std::max<uint64_t>(bytes, 1);
    return Fail(cuda->device->Check(cuda->has_pools ? driver.MemAllocAsync(address, least, stream)
                                                    : driver.MemAlloc(address, least),
                                    "no memory on the device"));
  });
}

void penstock_cuda_free(penstock_cuda* cuda, uint64_t address, void* stream) {
  if (address == 0) return;
  const Entered entered(*cuda->device);
  if (cuda->has_pools) {
    cuda->device->driver().MemFreeAsync(address, stream);
  } else {
    // Waits for what the device does with it.
    cuda->device->driver().MemFree(address);
  }
}

int penstock_cuda_copy(penstock_cuda* cuda, penstock_batch* batch, const void* from, uint64_t bytes,
                       uint64_t to, void* stream) {
  return Guarded([&]() -> int {
    if (bytes == 0) return PENSTOCK_OK;
    if (!IsPinned(cuda, batch, from, bytes)) {
      return Fail(CopyStaged(cuda, from, bytes, to, stream));
    }
    {
      const Entered entered(*cuda->device);
      const Status status =
          cuda->device->Check(cuda->device->driver().MemcpyHtoDAsync(to, from, bytes, stream),
                              "the copy to the device failed");
      if (!status.ok()) return Fail(status);
    }
    std::lock_guard<std::mutex> lock(cuda->mutex);
    ++cuda->stats.copies;
    cuda->stats.copied_bytes += bytes;
    return PENSTOCK_OK;
  });
}

int penstock_cuda_read(penstock_cuda* cuda, uint64_t from, uint64_t bytes, void* to, void* stream) {
  return Guarded([&]() -> int {
    if (bytes == 0) return PENSTOCK_OK;
    const Entered entered(*cuda->device);
    const penstock::cuda::Driver& driver = cuda->device->driver();
    Status status = cuda->device->Check(driver.MemcpyDtoHAsync(to, from, bytes, stream),
                                        "the copy from the device failed");
    if (status.ok()) {
      status = cuda->device->Check(driver.StreamSynchronize(stream), "the device has failed");
    }
    return Fail(status);
  });
}

int penstock_cuda_order(penstock_cuda* cuda, void* first, void* second) {
  return Guarded([&]() -> int {
    std::unique_ptr<Event> event;
    Status status = Event::Create(cuda->device, 0, &event);
    if (status.ok()) status = event->Record(first);
    if (status.ok()) status = event->HoldBack(second);
    return Fail(status);
  });
}

int penstock_cuda_synchronize(penstock_cuda* cuda, void* stream) {
  return Guarded([&]() -> int {
    const Entered entered(*cuda->device);
    return Fail(cuda->device->Check(cuda->device->driver().StreamSynchronize(stream),
                                    "the device has failed"));
  });
}

int penstock_cuda_after(penstock_cuda* cuda, void* stream, void (*done)(void*), void* argument) {
  bool is_kept = false;
  const int code = Guarded([&]() -> int {
    uint64_t pending = 0;
    Status status = CallDone(cuda, &pending);
    if (!status.ok()) return Fail(status);
    std::lock_guard<std::mutex> lock(cuda->mutex);
    penstock_cuda::Pending& one = cuda->pending.emplace_back();
    one.done = done;
    one.argument = argument;
    if (cuda->spare_events.empty()) {
      status = Event::Create(cuda->device, 0, &one.event);
    } else {
      one.event = std::move(cuda->spare_events.back());
      cuda->spare_events.pop_back();
    }
    if (status.ok()) status = one.event->Record(stream);
    if (!status.ok()) cuda->pending.pop_back();
    is_kept = status.ok();
    return Fail(status);
  });
  if (is_kept) return code;
  // A lost device reads nothing any more; another one is waited for.
  if (code == PENSTOCK_RESOURCE_EXHAUSTED) {
    const Entered entered(*cuda->device);
    cuda->device->driver().StreamSynchronize(stream);
  }
  done(argument);
  return code;
}

int penstock_cuda_release(penstock_cuda* cuda, penstock_batch* batch, void* stream) {
  return penstock_cuda_after(cuda, stream, &ReleaseBatch, batch);
}

int penstock_cuda_poll(penstock_cuda* cuda, uint64_t* pending) {
  return Guarded([&]() -> int {
    uint64_t count = 0;
    const Status status = CallDone(cuda, &count);
    if (pending != nullptr) *pending = count;
    return Fail(status);
  });
}

int penstock_batch_on_device(penstock_batch* batch, uint32_t index, void* stream,
                             penstock_device_tensor* tensor) {
  return Guarded([&]() -> int {
    const penstock_client::DeviceSlots* slots =
        batch->source == nullptr ? nullptr : batch->source->device_slots.get();
    if (slots == nullptr) {
      return Fail({Code::kFailedPrecondition,
                   "the batch is not on a device: give a penstock_cuda to penstock_attach_with"});
    }
    if (index >= batch->tensors.size()) {
      return Fail({Code::kOutOfRange, "there is no such tensor: " + std::to_string(index)});
    }
    const penstock::ring::DeviceTensor& from = slots->tensor(index);
    if (from.on_device == 0) {
      return Fail({Code::kFailedPrecondition,
                   "the tensor is in shared memory only, since its size is not fixed (tensor " +
                       std::string(batch->tensors[index].name) + ")"});
    }
    *tensor = {};
    tensor->address = slots->Find(batch->lease.slot, index);
    tensor->bytes = from.bytes;
    tensor->ndim = from.ndim;
    tensor->dtype = from.dtype;
    std::copy(from.shape, from.shape + from.ndim, tensor->shape);
    if (batch->tensors[index].batched != 0 && from.ndim > 0) {
      // A rank's rows, or those of a short batch.
      tensor->address += batch->first_row * from.row_bytes;
      tensor->shape[0] = std::min<int64_t>(batch->rows, from.shape[0]);
      tensor->bytes = static_cast<uint64_t>(tensor->shape[0]) * from.row_bytes;
    }
    // The daemon's copy was over when the batch was taken (next.cc): there is nothing that the
    // stream must wait for.
    static_cast<void>(stream);
    return PENSTOCK_OK;
  });
}

void penstock_cuda_get_stats(penstock_cuda* cuda, penstock_cuda_stats* stats) {
  std::lock_guard<std::mutex> lock(cuda->mutex);
  *stats = cuda->stats;
  stats->pending = cuda->pending.size();
}

const char* penstock_cuda_why_staged(penstock_cuda* cuda) {
  std::lock_guard<std::mutex> lock(cuda->mutex);
  return cuda->why_staged.c_str();
}

int32_t penstock_cuda_device(const penstock_cuda* cuda) { return cuda->device->ordinal(); }

int32_t penstock_cuda_driver_version(const penstock_cuda* cuda) {
  return cuda->device->driver_version();
}

}  // extern "C"
