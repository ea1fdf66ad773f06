// The device that these tests run on, and the libraries beside their program.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "tests/support/catch.h"

namespace penstock::cuda {

// ../lib/NAME, seen from the program.
std::string LibraryBeside(const char* name);
// The first argument of main().
const char* ProgramPath();

inline std::shared_ptr<const Device> Open(const std::string& library = DriverLibrary()) {
  std::shared_ptr<const Device> device;
  const ring::Status status = Device::Open(library, 0, &device);
  INFO(status.message);
  REQUIRE(status.ok());
  return device;
}

#define MUST(device, call, what) \
  REQUIRE((device)->Check((device)->driver().call, what).message == "")

// Device memory of a test.
class Memory {
 public:
  Memory(std::shared_ptr<const Device> device, uint64_t bytes) : device_(std::move(device)) {
    const Entered entered(*device_);
    MUST(device_, MemAlloc(&address_, bytes), "memory");
  }
  ~Memory() {
    const Entered entered(*device_);
    device_->driver().MemFree(address_);
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  Address address() const { return address_; }

 private:
  const std::shared_ptr<const Device> device_;
  Address address_ = 0;
};

inline void Write(const Device& device, Address to, const void* from, uint64_t bytes) {
  const Entered entered(device);
  MUST(&device, MemcpyHtoDAsync(to, from, bytes, nullptr), "a copy to the device");
  MUST(&device, StreamSynchronize(nullptr), "its end");
}

inline std::vector<uint8_t> Read(const Device& device, Address from, uint64_t bytes) {
  std::vector<uint8_t> to(bytes);
  const Entered entered(device);
  MUST(&device, MemcpyDtoHAsync(to.data(), from, bytes, nullptr), "a copy from the device");
  MUST(&device, StreamSynchronize(nullptr), "its end");
  return to;
}

inline std::vector<uint8_t> Pattern(uint64_t bytes, uint32_t seed) {
  std::vector<uint8_t> made(bytes);
  for (uint64_t i = 0; i < bytes; ++i) {
    seed = seed * 1664525 + 1013904223;
    made[i] = static_cast<uint8_t>(seed >> 24);
  }
  return made;
}

}  // namespace penstock::cuda
