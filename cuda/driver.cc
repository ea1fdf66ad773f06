#include "cuda/driver.h"

#include <dlfcn.h>

#include <cstdlib>

namespace penstock::cuda {
namespace {

using ring::Code;
using ring::Status;

constexpr const char* kLibrary = "libcuda.so.1";
// The functions are asked for as they were in this version, whatever the driver's own is.
constexpr int32_t kInterfaceVersion = 12000;
// CU_GET_PROC_ADDRESS_LEGACY_STREAM: the null stream is that of the device, whatever a program
// around this one was compiled for.
constexpr uint64_t kLegacyStream = 1;

using GetProcAddress = Result (*)(const char* symbol, void** function, int32_t version,
                                  uint64_t flags, int32_t* found);

std::string VersionText(int32_t version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

Status NoCuda(const std::string& message) { return {Code::kFailedPrecondition, message}; }

}  // namespace

std::string DriverLibrary() {
  const char* given = std::getenv("PENSTOCK_CUDA_DRIVER");
  return given != nullptr && *given != '\0' ? given : kLibrary;
}

Status LoadDriver(const std::string& library, Driver* out) {
  void* loaded = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) {
    const char* reason = dlerror();
    return NoCuda("no CUDA driver: " +
                  std::string(reason != nullptr ? reason : "its library cannot be loaded") + " (" +
                  library + ")");
  }
  const auto get = reinterpret_cast<GetProcAddress>(dlsym(loaded, "cuGetProcAddress_v2"));
  if (get == nullptr) {
    int32_t version = 0;
    const auto get_version =
        reinterpret_cast<Result (*)(int32_t*)>(dlsym(loaded, "cuDriverGetVersion"));
    if (get_version == nullptr || get_version(&version) != kSuccess) {
      return NoCuda("no CUDA driver: the library has no functions of one (" + library + ")");
    }
    return NoCuda("the CUDA driver is too old: it is of CUDA " + VersionText(version) +
                  ", and 12.0 is needed (" + library + ")");
  }
  Driver driver;
#define PENSTOCK_CUDA_LOAD(name, parameters)                                                       \
  if (get("cu" #name, reinterpret_cast<void**>(&driver.name), kInterfaceVersion, kLegacyStream,    \
          nullptr) != kSuccess ||                                                                  \
      driver.name == nullptr) {                                                                    \
    return NoCuda("the CUDA driver lacks a function: cu" #name " of CUDA 12.0 (" + library + ")"); \
  }
  PENSTOCK_CUDA_FUNCTIONS(PENSTOCK_CUDA_LOAD)
#undef PENSTOCK_CUDA_LOAD
  const Result result = driver.Init(0);
  if (result == kErrorNoDevice) {
    return NoCuda("no CUDA device: the driver is there and finds none (" + library + ")");
  }
  if (result == kErrorStubLibrary) {
    return NoCuda("no CUDA driver: the library is the toolkit's stub, for linking only (" +
                  library + ")");
  }
  if (result != kSuccess) {
    return NoCuda(CallError(driver, result, "the CUDA driver does not start").message);
  }
  *out = driver;
  return {};
}

Status CallError(const Driver& driver, Result result, const std::string& what) {
  const char* name = nullptr;
  if (driver.GetErrorName(result, &name) != kSuccess || name == nullptr) name = "an unknown error";
  return {result == kErrorOutOfMemory ? Code::kResourceExhausted : Code::kUnavailable,
          what + ": " + name + " (" + std::to_string(result) + ")"};
}

}  // namespace penstock::cuda
