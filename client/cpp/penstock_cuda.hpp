// Batches on a CUDA device as C++ objects, over penstock_cuda.h.
//
//   penstock::Cuda cuda(0);
//   penstock::Loader loader("images");
//   penstock::DeviceMemory images(cuda, 40 * 192 * 192 * 3, stream);
//   while (std::optional<penstock::Batch> batch = loader.Next()) {
//     cuda.Copy(*batch, (*batch)["image"], images.address(), stream);
//     cuda.Release(std::move(*batch), stream);          // when the copy is done; returns at once
//     train<<<..., stream>>>(images.data<uint8_t>());
//   }
//
// Or, where the pipeline's ring is on a device (`ring { device: 0 }`), without a copy:
//
//   penstock_attach_options options = penstock::Loader::DefaultOptions();
//   options.pipeline = "images";
//   options.cuda = cuda.get();
//   penstock::Loader loader(options);
//   while (std::optional<penstock::Batch> batch = loader.Next()) {
//     penstock::DeviceTensor image = cuda.OnDevice(*batch, "image", stream);
//     train<<<..., stream>>>(image.data<float>());
//     cuda.Release(std::move(*batch), stream);          // when the kernel is done with it
//   }
//
// Streams are CUstream or cudaStream_t; null is the legacy default stream.
//
// Threads:  every function may be called from any thread.
// Owns:     a Cuda owns its reference to the device and outlives the loaders that were given it.
// Errors:   penstock::Error. Nothing here needs a CUDA library to be linked or installed; Cuda's
//           constructor throws where there is no driver (PENSTOCK_FAILED_PRECONDITION) or no such
//           device (PENSTOCK_NOT_FOUND).
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "penstock.hpp"
#include "penstock_cuda.h"

namespace penstock {

// A tensor in a device's ring, in C order. It is valid until its batch is released. Whoever writes
// there changes what other trainers read.
class DeviceTensor {
 public:
  explicit DeviceTensor(const penstock_device_tensor& tensor) : tensor_(tensor) {}

  uint64_t address() const { return tensor_.address; }
  uint64_t bytes() const { return tensor_.bytes; }
  // An expansion of the spec may have changed type and shape.
  int dtype() const { return static_cast<int>(tensor_.dtype); }
  std::span<const int64_t> shape() const { return {tensor_.shape, tensor_.ndim}; }
  // For kernels: the host cannot read there.
  template <typename T>
  const T* data() const {
    return reinterpret_cast<const T*>(static_cast<uintptr_t>(tensor_.address));
  }

 private:
  penstock_device_tensor tensor_;
};

class Cuda {
 public:
  // `device` as the CUDA runtime counts.
  explicit Cuda(int32_t device = 0) { Check(penstock_cuda_open(device, &cuda_)); }
  Cuda(Cuda&& other) noexcept : cuda_(std::exchange(other.cuda_, nullptr)) {}
  Cuda& operator=(Cuda&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    return *this;
  }
  // Waits for what is pending, but not for a device that does not answer.
  ~Cuda() {
    if (cuda_ != nullptr) penstock_cuda_close(cuda_);
  }

  // For penstock_attach_options::cuda.
  penstock_cuda* get() const { return cuda_; }

  // Enqueues a copy of a tensor's bytes to device memory. The batch is held until Release().
  void Copy(const Batch& batch, const Tensor& tensor, uint64_t to, void* stream = nullptr) {
    const std::span<const std::byte> bytes = tensor.bytes();
    Check(penstock_cuda_copy(cuda_, batch.get(), bytes.data(), bytes.size(), to, stream));
  }
  // Of any memory, which may be changed as soon as this returns.
  void Copy(std::span<const std::byte> from, uint64_t to, void* stream = nullptr) {
    Check(penstock_cuda_copy(cuda_, nullptr, from.data(), from.size(), to, stream));
  }
  // Back to the host: waits for it.
  void Read(uint64_t from, std::span<std::byte> to, void* stream = nullptr) {
    Check(penstock_cuda_read(cuda_, from, to.size(), to.data(), stream));
  }
  // What comes next in `second` begins when all that `first` was given so far is done.
  void Order(void* first, void* second) { Check(penstock_cuda_order(cuda_, first, second)); }

  // Waits until the stream has done all that it was given so far.
  void Synchronize(void* stream = nullptr) { Check(penstock_cuda_synchronize(cuda_, stream)); }

  // A tensor of a batch in a device's ring, of which `stream` may read from here on.
  // PENSTOCK_FAILED_PRECONDITION where it is not on the device.
  DeviceTensor OnDevice(const Batch& batch, size_t index, void* stream = nullptr) {
    penstock_device_tensor tensor;
    Check(penstock_batch_on_device(batch.get(), static_cast<uint32_t>(index), stream, &tensor));
    return DeviceTensor(tensor);
  }
  DeviceTensor OnDevice(const Batch& batch, const char* name, void* stream = nullptr) {
    for (size_t i = 0; i < batch.size(); ++i) {
      if (batch[i].name() == name) return OnDevice(batch, i, stream);
    }
    throw Error(PENSTOCK_NOT_FOUND, std::string("the batch has no tensor ") + name);
  }

  // Gives the batch back when all that the stream was given so far is done, and at once where the
  // device has failed. Does not wait.
  void Release(Batch batch, void* stream = nullptr) {
    Check(penstock_cuda_release(cuda_, batch.Give(), stream));
  }
  // Looks for what is done, and returns how much is not. PENSTOCK_UNAVAILABLE when the device has
  // failed: everything is released then.
  uint64_t Poll() {
    uint64_t pending = 0;
    Check(penstock_cuda_poll(cuda_, &pending));
    return pending;
  }

  penstock_cuda_stats stats() const {
    penstock_cuda_stats stats;
    penstock_cuda_get_stats(cuda_, &stats);
    return stats;
  }
  // Why copies go through staging buffers; empty while none had to.
  std::string why_staged() const { return penstock_cuda_why_staged(cuda_); }
  int32_t device() const { return penstock_cuda_device(cuda_); }
  // 12080 is CUDA 12.8.
  int32_t driver_version() const { return penstock_cuda_driver_version(cuda_); }

 private:
  friend class DeviceMemory;
  static void Check(int code) {
    if (code != PENSTOCK_OK) throw Error(code, penstock_last_error());
  }

  penstock_cuda* cuda_ = nullptr;
};

// Device memory in the order of a stream.
class DeviceMemory {
 public:
  DeviceMemory(const Cuda& cuda, uint64_t bytes, void* stream = nullptr)
      : cuda_(cuda.get()), stream_(stream), bytes_(bytes) {
    Cuda::Check(penstock_cuda_allocate(cuda_, bytes, stream, &address_));
  }
  DeviceMemory(DeviceMemory&& other) noexcept
      : cuda_(other.cuda_),
        stream_(other.stream_),
        bytes_(other.bytes_),
        address_(std::exchange(other.address_, 0)) {}
  DeviceMemory& operator=(DeviceMemory&& other) noexcept {
    std::swap(cuda_, other.cuda_);
    std::swap(stream_, other.stream_);
    std::swap(bytes_, other.bytes_);
    std::swap(address_, other.address_);
    return *this;
  }
  ~DeviceMemory() {
    if (address_ != 0) penstock_cuda_free(cuda_, address_, stream_);
  }

  uint64_t address() const { return address_; }
  uint64_t bytes() const { return bytes_; }
  template <typename T>
  T* data() const {
    return reinterpret_cast<T*>(static_cast<uintptr_t>(address_));
  }

 private:
  penstock_cuda* cuda_;
  void* stream_;
  uint64_t bytes_;
  uint64_t address_ = 0;
};

}  // namespace penstock
