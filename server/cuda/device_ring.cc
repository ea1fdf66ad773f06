#include "server/cuda/device_ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "ring/device_layout.h"
#include "ring/segment_plan.h"

namespace penstock {
namespace {

using ring::Code;
using ring::Status;

// What devices align memory to, and what kernels and frameworks like.
constexpr uint64_t kAlignment = 256;
constexpr uint64_t kHostPage = 4096;

uint64_t RoundUp(uint64_t bytes, uint64_t unit) { return (bytes + unit - 1) / unit * unit; }

}  // namespace

Status DeviceRing::Create(const DeviceRingOptions& options, std::unique_ptr<DeviceRing>* out) {
  std::shared_ptr<const cuda::Device> device;
  if (Status status = cuda::Device::Open(options.library, options.device, &device); !status.ok()) {
    return status;
  }
  std::unique_ptr<DeviceRing> ring(new DeviceRing(std::move(device)));
  Status status = ring->PlaceTensors(options);
  if (status.ok()) status = ring->Allocate();
  if (status.ok()) status = ring->PrepareExpansions(options.kernels);
  if (status.ok()) status = ring->WriteTable();
  if (!status.ok()) return status;
  ring->Pin();
  *out = std::move(ring);
  return {};
}

Status DeviceRing::PlaceTensors(const DeviceRingOptions& options) {
  slots_ = options.slots;
  tensors_.resize(options.tensors.size());
  const uint8_t* first = nullptr;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const BatchTensor& from = options.tensors[i];
    Tensor& tensor = tensors_[i];
    tensor.on_device = from.fixed();
    if (!tensor.on_device) continue;
    tensor.dtype = static_cast<ring::TensorDType>(from.type.dtype);
    tensor.shape.assign(from.type.shape.begin(), from.type.shape.end());
    tensor.bytes = *NumBytes(from.type);
    if (first == nullptr) first = slots_[0][i];
    // The same distances on the device as on the host: one copy takes them all.
    tensor.copied_to = static_cast<uint64_t>(slots_[0][i] - first);
    copied_bytes_ = std::max(copied_bytes_, tensor.copied_to + tensor.bytes);
    tensor.expansion = options.expansions[i];
  }
  if (first == nullptr) {
    return {Code::kInvalidArgument,
            "ring.device is given, and no tensor is of fixed size: nothing can lie on the device"};
  }
  for (const auto& slot : slots_) {
    for (size_t i = 0; i < tensors_.size(); ++i) {
      if (!tensors_[i].on_device || tensors_[i].copied_to != 0) continue;
      copied_from_.push_back(slot[i]);
      break;
    }
  }
  slot_stride_ = RoundUp(copied_bytes_, kAlignment);
  for (Tensor& tensor : tensors_) {
    if (!tensor.expansion) continue;
    tensor.expanded_to = slot_stride_;
    slot_stride_ += RoundUp(tensor.expansion->bytes, kAlignment);
  }
  slot_stride_ = std::max(slot_stride_, kAlignment);
  if (__builtin_mul_overflow(slot_stride_, slots_.size(), &memory_bytes_))
    memory_bytes_ = UINT64_MAX;
  return {};
}

Status DeviceRing::Allocate() {
  if (device_->Attribute(cuda::kAttributeIpcEvents) == 0) {
    return {
        Code::kFailedPrecondition,
        "processes cannot share events of the device, by which trainers wait for its ring: leave "
        "ring.device out (CUDA device " +
            std::to_string(device_->ordinal()) + ")"};
  }
  const cuda::Entered entered(*device_);
  const cuda::Driver& driver = device_->driver();
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  Status status = device_->Check(driver.MemGetInfo(&free_bytes, &total_bytes),
                                 "the device's memory cannot be asked for");
  if (!status.ok()) return status;
  const auto too_large = [&](const std::string& why) {
    return Status{
        Code::kResourceExhausted,
        "the ring is larger than the device's free memory: " + std::to_string(slots_.size()) +
            " slots need " + std::to_string(memory_bytes_) + " bytes, and " +
            std::to_string(free_bytes) + " of " + std::to_string(total_bytes) + " are free" + why +
            "; a smaller ring { slots: N } or batch_size, or another device"};
  };
  if (memory_bytes_ > free_bytes) return too_large("");
  status = cuda::SharedMemory::Create(device_, memory_bytes_, &memory_);
  if (status.code == Code::kResourceExhausted) return too_large(" in too small pieces");
  if (status.ok()) {
    status = device_->Check(driver.StreamCreate(&stream_, cuda::kStreamNonBlocking),
                            "a stream cannot be made");
  }
  for (size_t slot = 0; status.ok() && slot < slots_.size(); ++slot) {
    status = cuda::Event::Create(device_, cuda::kEventInterprocess, &events_.emplace_back());
  }
  return status;
}

Status DeviceRing::PrepareExpansions(std::span<const uint8_t> kernels) {
  for (Tensor& tensor : tensors_) {
    if (!tensor.expansion) continue;
    Status status;
    if (expander_ == nullptr) status = cuda::Expander::Create(device_, kernels, &expander_);
    if (status.ok())
      status = expander_->Prepare(*tensor.expansion, tensor.dtype, tensor.shape, &tensor.ready);
    if (!status.ok()) return status;
  }
  return {};
}

void DeviceRing::Pin() {
  for (const uint8_t* from : copied_from_) {
    // Whole pages; a slot begins with one and has spare bytes behind its tensors.
    const auto address = reinterpret_cast<uintptr_t>(from);
    const uintptr_t begin = address / kHostPage * kHostPage;
    const uint64_t bytes = RoundUp(address + copied_bytes_ - begin, kHostPage);
    const Status status =
        cuda::PinnedRange::Register(device_, reinterpret_cast<const void*>(begin), bytes,
                                    /*read_only=*/false, &pinned_.emplace_back());
    if (status.ok()) continue;
    // Copies work without, more slowly: the driver stages them by itself.
    pinned_.clear();
    not_pinned_ = status.message;
    return;
  }
}

Status DeviceRing::WriteTable() {
  std::vector<uint8_t> bytes(sizeof(ring::DeviceTable) +
                             tensors_.size() * sizeof(ring::DeviceTensor));
  ring::DeviceTable table = {};
  table.magic = ring::kDeviceMagic;
  table.version = ring::kDeviceVersion;
  table.table_bytes = sizeof table;
  std::memcpy(table.uuid, device_->uuid().bytes, sizeof table.uuid);
  table.driver_version = device_->driver_version();
  table.num_tensors = static_cast<uint32_t>(tensors_.size());
  table.slots = static_cast<uint32_t>(slots_.size());
  table.tensor_bytes = sizeof(ring::DeviceTensor);
  table.slot_stride = slot_stride_;
  table.memory_bytes = memory_bytes_;
  if (memory_->descriptor() >= 0) {
    table.mapped_bytes = memory_->bytes();
  } else {
    cuda::IpcMemory memory;
    if (Status status = memory_->Handle(&memory); !status.ok()) return status;
    std::memcpy(table.memory, memory.bytes, sizeof table.memory);
  }
  for (size_t slot = 0; slot < slots_.size(); ++slot) {
    cuda::IpcEvent event;
    if (Status status = events_[slot]->Handle(&event); !status.ok()) return status;
    std::memcpy(table.events[slot], event.bytes, sizeof event.bytes);
  }
  std::memcpy(bytes.data(), &table, sizeof table);
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const Tensor& from = tensors_[i];
    ring::DeviceTensor to = {};
    to.on_device = from.on_device;
    if (from.on_device) {
      const bool expanded = from.expansion.has_value();
      const std::vector<int64_t>& shape = expanded ? from.expansion->shape : from.shape;
      to.dtype = static_cast<uint8_t>(expanded ? from.expansion->dtype : from.dtype);
      to.offset = expanded ? from.expanded_to : from.copied_to;
      to.bytes = expanded ? from.expansion->bytes : from.bytes;
      to.row_bytes =
          shape.empty() || shape[0] == 0 ? 0 : to.bytes / static_cast<uint64_t>(shape[0]);
      to.ndim = static_cast<uint32_t>(shape.size());
      if (shape.size() > std::size(to.shape)) {
        return {Code::kInvalidArgument, "a tensor on the device has at most 17 axes"};
      }
      std::copy(shape.begin(), shape.end(), to.shape);
    }
    std::memcpy(bytes.data() + sizeof table + i * sizeof to, &to, sizeof to);
  }
  table_ = ring::Descriptor(memfd_create("penstock-device", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!table_ ||
      write(table_.get(), bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      fcntl(table_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) !=
          0) {
    return {Code::kResourceExhausted,
            std::string("the device's table cannot be written: ") + std::strerror(errno)};
  }
  return {};
}

Status DeviceRing::Copy(uint32_t slot) {
  const cuda::Address to = memory_->address() + slot * slot_stride_;
  {
    const cuda::Entered entered(*device_);
    const cuda::Result result =
        device_->driver().MemcpyHtoDAsync(to, copied_from_[slot], copied_bytes_, stream_);
    if (Status status = device_->Check(result, "the copy to the device failed"); !status.ok()) {
      return status;
    }
  }
  for (const Tensor& tensor : tensors_) {
    if (tensor.ready == nullptr) continue;
    const Status status =
        tensor.ready->Run(to + tensor.copied_to, to + tensor.expanded_to, stream_);
    if (!status.ok()) return status;
  }
  return events_[slot]->Record(stream_);
}

cuda::Event::State DeviceRing::Look(uint32_t slot, Status* error) const {
  return events_[slot]->Look(error);
}

DeviceRing::~DeviceRing() {
  const cuda::Entered entered(*device_);
  const cuda::Driver& driver = device_->driver();
  // What is under way reads the slots.
  if (stream_ != nullptr) {
    driver.StreamSynchronize(stream_);
    driver.StreamDestroy(stream_);
  }
  events_.clear();
  pinned_.clear();
  memory_.reset();
}

}  // namespace penstock
