// The machine's driver, save that its devices share no memory by descriptors: so the way by CUDA's
// 64-byte handles is tried on a device that has both. Tests load it in the driver's place
// (PENSTOCK_CUDA_DRIVER); PENSTOCK_TEST_DRIVER_BELOW names another driver than the machine's.
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "cuda/driver.h"

namespace {

using penstock::cuda::DeviceNumber;
using penstock::cuda::Result;

using GetProcAddress = Result (*)(const char*, void**, int32_t, uint64_t, int32_t*);
using GetAttribute = Result (*)(int32_t*, int32_t, DeviceNumber);

GetAttribute get_attribute = nullptr;

Result WithoutDescriptors(int32_t* value, int32_t attribute, DeviceNumber device) {
  const Result result = get_attribute(value, attribute, device);
  if (attribute == penstock::cuda::kAttributeDescriptors) *value = 0;
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) Result cuGetProcAddress_v2(
    const char* symbol, void** function, int32_t version, uint64_t flags, int32_t* found) {
  static const char* const below = std::getenv("PENSTOCK_TEST_DRIVER_BELOW");
  static void* const driver =
      dlopen(below != nullptr ? below : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  static const auto get =
      driver == nullptr ? nullptr
                        : reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  if (get == nullptr) return penstock::cuda::kErrorNoDevice;
  const Result result = get(symbol, function, version, flags, found);
  if (std::strcmp(symbol, "cuDeviceGetAttribute") == 0) {
    get_attribute = reinterpret_cast<GetAttribute>(*function);
    *function = reinterpret_cast<void*>(&WithoutDescriptors);
  }
  return result;
}
