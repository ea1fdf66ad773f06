// What CUDA costs here: copies out of a mapped ring beside plain pinned ones, and the expansion
// kernels beside the device's memory. One line of JSON a case; without a device a line that says
// so, and nothing was measured.
//
//   bench_cuda [DEVICE]
//
// "ring" is memory as a trainer has it: a sealed memory file, mapped to be read only, and
// registered. "pinned" is memory of cuMemHostAlloc, the best that there is. Sides take turns;
// medians of 21 rounds.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "bench/cuda_measure.h"
#include "cuda/device.h"
#include "cuda/expansion.h"
#include "cuda/pinned_range.h"
#include "ring/segment_plan.h"

namespace penstock::cuda {
namespace {

constexpr int kRounds = 21;
// Each round moves about so much, so that its start and end do not count.
constexpr uint64_t kRoundBytes = uint64_t{1} << 30;

class Bench {
 public:
  explicit Bench(std::shared_ptr<const Device> device)
      : device_(std::move(device)), entered_(*device_) {
    Must(device_->Check(driver().StreamCreate(&stream_, kStreamNonBlocking), "a stream"));
  }
  ~Bench() { driver().StreamDestroy(stream_); }

  void Copies(uint64_t bytes) {
    const int fd = memfd_create("bench-cuda", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) std::exit(1);
    void* written = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    std::memset(written, 1, bytes);
    void* ring = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, fd, 0);
    std::unique_ptr<PinnedRange> registered;
    const ring::Status status = PinnedRange::Register(device_, ring, bytes, true, &registered);
    void* pinned = nullptr;
    Must(device_->Check(driver().MemHostAlloc(&pinned, bytes, 0), "pinned memory"));
    std::memset(pinned, 1, bytes);
    Address to = 0;
    Must(device_->Check(driver().MemAlloc(&to, bytes), "device memory"));
    const int count = static_cast<int>(std::max<uint64_t>(1, kRoundBytes / bytes));
    const auto copy = [&](const void* from) {
      return Seconds([&] {
        for (int i = 0; i < count; ++i)
          Must(device_->Check(driver().MemcpyHtoDAsync(to, from, bytes, stream_), "a copy"));
      });
    };
    std::vector<double> from_ring, from_pinned;
    for (int round = 0; round < kRounds; ++round) {
      from_ring.push_back(copy(ring));
      from_pinned.push_back(copy(pinned));
    }
    const double moved = static_cast<double>(bytes) * count;
    std::printf(
        "{\"case\": \"host_to_device\", \"bytes\": %llu, \"why_not_registered\": \"%s\", "
        "\"ring_gb_per_s\": %.2f, \"pinned_gb_per_s\": %.2f, \"ratio\": %.3f}\n",
        static_cast<unsigned long long>(bytes), status.message.c_str(),
        moved / Median(from_ring) * 1e-9, moved / Median(from_pinned) * 1e-9,
        Median(from_pinned) / Median(from_ring));
    driver().MemFree(to);
    driver().MemFreeHost(pinned);
    registered.reset();
    munmap(ring, bytes);
    munmap(written, bytes);
    close(fd);
  }

  // Beside a copy inside of the device, which reads and writes each byte once.
  void Kernel(const char* name, Expansion expansion, ring::TensorDType from,
              const std::vector<int64_t>& shape) {
    Must(Plan(from, shape, &expansion));
    uint64_t from_bytes = ring::ElementBytes(static_cast<uint8_t>(from));
    for (const int64_t size : shape) from_bytes *= static_cast<uint64_t>(size);
    const uint64_t moved = from_bytes + expansion.bytes;
    Address in = 0, out = 0;
    Must(device_->Check(driver().MemAlloc(&in, moved / 2 + 64), "device memory"));
    Must(device_->Check(driver().MemAlloc(&out, std::max(expansion.bytes, moved / 2 + 64)),
                        "device memory"));
    // Not zeros, which tables are looked up in at one place, and which devices may move faster.
    std::vector<uint32_t> random((moved / 2 + 64) / sizeof(uint32_t));
    std::minstd_rand next;
    for (uint32_t& one : random) one = static_cast<uint32_t>(next() * 2654435761u);
    Must(device_->Check(
        driver().MemcpyHtoDAsync(in, random.data(), random.size() * sizeof(uint32_t), stream_),
        "the input"));
    Must(device_->Check(driver().StreamSynchronize(stream_), "the input"));
    std::unique_ptr<Expander> expander;
    std::unique_ptr<ReadyExpansion> ready;
    Must(Expander::Create(device_, Kernels(), &expander));
    Must(expander->Prepare(expansion, from, shape, &ready));
    const int count = static_cast<int>(std::max<uint64_t>(1, 8 * kRoundBytes / moved));
    std::vector<double> kernel, plain;
    for (int round = 0; round < kRounds; ++round) {
      kernel.push_back(Seconds([&] {
        for (int i = 0; i < count; ++i) Must(ready->Run(in, out, stream_));
      }));
      plain.push_back(Seconds([&] {
        for (int i = 0; i < count; ++i)
          Must(device_->Check(driver().MemcpyDtoDAsync(out, in, moved / 2, stream_), "a copy"));
      }));
    }
    const double bytes = static_cast<double>(moved) * count;
    std::printf(
        "{\"case\": \"%s\", \"bytes\": %llu, \"kernel_gb_per_s\": %.1f, \"memory_gb_per_s\": %.1f, "
        "\"ratio\": %.3f}\n",
        name, static_cast<unsigned long long>(moved), bytes / Median(kernel) * 1e-9,
        bytes / Median(plain) * 1e-9, Median(plain) / Median(kernel));
    driver().MemFree(in);
    driver().MemFree(out);
  }

 private:
  const Driver& driver() const { return device_->driver(); }
  double Seconds(const std::function<void()>& work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    Must(device_->Check(driver().StreamSynchronize(stream_), "the device"));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  const std::shared_ptr<const Device> device_;
  const Entered entered_;
  StreamHandle stream_ = nullptr;
};

int Run(int32_t ordinal) {
  std::shared_ptr<const Device> device;
  const ring::Status status = Device::Open(DriverLibrary(), ordinal, &device);
  if (!status.ok()) {
    std::printf("{\"case\": \"cuda\", \"not_run\": \"%s\"}\n", status.message.c_str());
    return 0;
  }
  Bench bench(device);
  for (const uint64_t bytes : {1u << 20, 9633792u, 38535168u, 128u << 20}) bench.Copies(bytes);
  if (Kernels().empty()) {
    std::printf("{\"case\": \"expansion\", \"not_run\": \"built without nvcc\"}\n");
    return 0;
  }
  using ring::TensorDType;
  Expansion normalize;
  normalize.scale = {255};
  normalize.mean = {0.485, 0.456, 0.406};
  normalize.deviation = {0.229, 0.224, 0.225};
  bench.Kernel("normalize_nhwc", normalize, TensorDType::kUint8, {256, 224, 224, 3});
  normalize.dtype = TensorDType::kFloat16;
  bench.Kernel("normalize_nhwc_float16", normalize, TensorDType::kUint8, {256, 224, 224, 3});
  normalize.channels_first = true;
  bench.Kernel("normalize_nchw_float16", normalize, TensorDType::kUint8, {256, 224, 224, 3});
  normalize.dtype = TensorDType::kFloat32;
  bench.Kernel("normalize_nchw", normalize, TensorDType::kUint8, {256, 224, 224, 3});
  // Planes that no store divides, and whose neighbours therefore begin where none may.
  bench.Kernel("normalize_nchw_299", normalize, TensorDType::kUint8, {128, 299, 299, 3});
  normalize.mean = normalize.deviation = {0.5};
  bench.Kernel("normalize_nchw_rgba", normalize, TensorDType::kUint8, {192, 224, 224, 4});
  bench.Kernel("normalize_nchw_rgba_299", normalize, TensorDType::kUint8, {96, 299, 299, 4});
  for (const auto& [name, dtype] :
       {std::pair{"", TensorDType::kFloat32}, std::pair{"_float16", TensorDType::kFloat16},
        std::pair{"_uint8", TensorDType::kUint8}}) {
    Expansion one_hot;
    one_hot.kind = Expansion::Kind::kOneHot;
    one_hot.depth = 1000;
    one_hot.dtype = dtype;
    bench.Kernel((std::string("one_hot_1000") + name).c_str(), one_hot, TensorDType::kInt64,
                 {65536});
    Expansion bits;
    bits.kind = Expansion::Kind::kUnpackBits;
    bits.dtype = dtype;
    bench.Kernel((std::string("unpack_bits") + name).c_str(), bits, TensorDType::kUint8,
                 {65536, 194});
  }
  return 0;
}

}  // namespace
}  // namespace penstock::cuda

int main(int argc, char** argv) { return penstock::cuda::Run(argc > 1 ? std::atoi(argv[1]) : 0); }
