// A trainer in C++ that takes a pipeline of images from a device's ring (tests/e2e/test_cuda.py):
//
//   device_trainer SOCKET PIPELINE
//
// reads each batch's "image" back from the device and prints its step, its shape and the sum of its
// bytes.
#include <cstddef>
#include <cstdio>
#include <optional>
#include <utility>
#include <vector>

#include "client/cpp/penstock_cuda.hpp"

int main(int, char** argv) try {
  penstock::Cuda cuda(0);
  penstock_attach_options options = penstock::Loader::DefaultOptions();
  options.socket = argv[1];
  options.pipeline = argv[2];
  options.cuda = cuda.get();
  penstock::Loader loader(options);
  while (std::optional<penstock::Batch> batch = loader.Next()) {
    const penstock::DeviceTensor image = cuda.OnDevice(*batch, "image");
    std::vector<std::byte> bytes(image.bytes());
    cuda.Read(image.address(), bytes);
    unsigned long sum = 0;
    for (const std::byte byte : bytes) sum += std::to_integer<unsigned>(byte);
    std::printf("%llu", static_cast<unsigned long long>(batch->step()));
    for (const int64_t axis : image.shape()) std::printf(" %lld", static_cast<long long>(axis));
    std::printf(" %lu\n", sum);
    cuda.Release(std::move(*batch));
  }
  return 0;
} catch (const penstock::Error& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
