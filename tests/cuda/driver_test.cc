// What a machine without CUDA is told, through the loader that looks for the real driver
// (fault 65).
#include "cuda/driver.h"

#include <sys/mman.h>

#include <cstddef>
#include <type_traits>

#include "cuda/device.h"
#include "cuda/pinned_range.h"
#include "tests/cuda/fake.h"
#include "tests/support/catch.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#endif

namespace penstock::cuda {
namespace {

using ring::Code;
using ring::Status;

bool Says(const Status& status, const char* words) {
  INFO(status.message);
  CHECK(status.message.find(words) != std::string::npos);
  return status.message.find(words) != std::string::npos;
}

TEST_CASE("without a driver there is a sentence") {
  Driver driver;
  const Status status = LoadDriver("/there/is/no/libcuda.so.1", &driver);
  CHECK(status.code == Code::kFailedPrecondition);
  CHECK(Says(status, "no CUDA driver: "));
  CHECK(Says(status, "/there/is/no/libcuda.so.1"));
}

TEST_CASE("a driver that is too old is named with its version") {
  Driver driver;
  const Status status = LoadDriver(NO_CUDA, &driver);
  CHECK(status.code == Code::kFailedPrecondition);
  CHECK(Says(status, "the CUDA driver is too old: it is of CUDA 11.8, and 12.0 is needed"));
}

TEST_CASE("a library that is no driver is none") {
  Driver driver;
  const Status status = LoadDriver("libc.so.6", &driver);
  CHECK(status.code == Code::kFailedPrecondition);
  CHECK(Says(status, "the library has no functions of one"));
}

TEST_CASE("what a driver says when it starts") {
  Fake fake;
  Driver driver;
  struct Case {
    const char* name;
    int64_t number;
    const char* words;
  };
  const Case one =
      GENERATE(Case{"init", kErrorNoDevice, "no CUDA device: the driver is there and finds none"},
               Case{"init", kErrorStubLibrary, "the toolkit's stub"},
               Case{"init", 3, "the CUDA driver does not start: CUDA_ERROR_FAKE (3)"},
               Case{"missing", 1, "the CUDA driver lacks a function: cuMemAlloc"});
  fake.Set(one.name, one.number);
  const Status status = LoadDriver(FAKE_CUDA, &driver);
  CHECK(status.code == Code::kFailedPrecondition);
  CHECK(Says(status, one.words));
}

TEST_CASE("a device is opened, and given back") {
  Fake fake;
  const int64_t before = fake["contexts"];
  {
    const auto device = fake.Open();
    CHECK(device->ordinal() == 0);
    CHECK(device->driver_version() == 12080);
    CHECK(fake["contexts"] == before + 1);
  }
  CHECK(fake["contexts"] == before);
}

TEST_CASE("a device that is not there is refused with the number of those that are") {
  Fake fake;
  fake.Set("devices", 2);
  std::shared_ptr<const Device> device;
  for (const int32_t ordinal : {-1, 2}) {
    const Status status = Device::Open(FAKE_CUDA, ordinal, &device);
    CHECK(status.code == Code::kNotFound);
    CHECK(Says(status, "there are 2, counted from 0"));
  }
  fake.Set("devices", 0);
  CHECK(Device::Open(FAKE_CUDA, 0, &device).code == Code::kFailedPrecondition);
  CHECK(device == nullptr);
}

TEST_CASE("a device that its compute mode gives to one process alone is named so") {
  Fake fake;
  struct Case {
    int64_t mode;
    const char* words;
  };
  const Case one =
      GENERATE(Case{kComputeExclusive, "the device is another process's alone by its compute mode"},
               Case{kComputeProhibited, "the device is closed to all processes"},
               Case{0, "no context on the device (CUDA device 0): CUDA_ERROR_FAKE (46)"});
  fake.Set("context", kErrorDeviceUnavailable);
  fake.Set("mode", one.mode);
  std::shared_ptr<const Device> device;
  const Status status = Device::Open(FAKE_CUDA, 0, &device);
  CHECK(status.code == (one.mode != 0 ? Code::kFailedPrecondition : Code::kUnavailable));
  CHECK(Says(status, one.words));
  CHECK(device == nullptr);
}

TEST_CASE("memory that is mapped read-only is registered where the device can") {
  Fake fake;
  const auto device = fake.Open();
  void* const memory = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  std::unique_ptr<PinnedRange> range;
  const auto registered = [&] {
    return PinnedRange::Register(device, memory, 4096, /*read_only=*/true, &range);
  };
  SECTION("by the flag") {
    CHECK(registered().ok());
    CHECK(fake["registered"] == 1);
  }
  SECTION("by the host's page tables, where there is no flag") {
    fake.Set("read_only", 0);
    fake.Set("host_pages", 1);
    CHECK(registered().ok());
    CHECK(fake["registered"] == 1);
  }
  SECTION("neither") {
    fake.Set("read_only", 0);
    CHECK(registered().code == Code::kUnimplemented);
    CHECK(fake["registered"] == 0);
  }
  range.reset();
  munmap(memory, 4096);
}

TEST_CASE("lack of memory is told from other errors") {
  Fake fake;
  const auto device = fake.Open();
  CHECK(device->Check(kSuccess, "x").ok());
  CHECK(device->Check(kErrorOutOfMemory, "x").code == Code::kResourceExhausted);
  const Status status = device->Check(214, "the copy failed");
  CHECK(status.code == Code::kUnavailable);
  CHECK(status.message == "the copy failed (CUDA device 0): CUDA_ERROR_ECC_UNCORRECTABLE (214)");
}

#ifdef CUDA_VERSION
// The declarations of cuda/driver.h are those of the toolkit.
static_assert(sizeof(CUresult) == sizeof(Result) && sizeof(CUdevice) == sizeof(DeviceNumber) &&
              sizeof(CUdeviceptr) == sizeof(Address));
static_assert(sizeof(CUipcMemHandle) == sizeof(IpcMemory) &&
              sizeof(CUipcEventHandle) == sizeof(IpcEvent) && sizeof(CUuuid) == sizeof(Uuid));
static_assert(CUDA_ERROR_OUT_OF_MEMORY == kErrorOutOfMemory &&
              CUDA_ERROR_STUB_LIBRARY == kErrorStubLibrary &&
              CUDA_ERROR_DEVICE_UNAVAILABLE == kErrorDeviceUnavailable &&
              CUDA_ERROR_NO_DEVICE == kErrorNoDevice &&
              CUDA_ERROR_INVALID_DEVICE == kErrorInvalidDevice &&
              CUDA_ERROR_NOT_READY == kErrorNotReady &&
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED == kErrorAlreadyRegistered &&
              CUDA_ERROR_NOT_SUPPORTED == kErrorNotSupported);
static_assert(CU_DEVICE_ATTRIBUTE_READ_ONLY_HOST_REGISTER_SUPPORTED ==
                  kAttributeReadOnlyHostRegister &&
              CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED == kAttributeMemoryPools &&
              CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED == kAttributeIpcEvents &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == kAttributeComputeCapabilityMajor &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == kAttributeComputeCapabilityMinor &&
              CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES ==
                  kAttributeHostPageTables &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_MODE == kAttributeComputeMode &&
              CU_COMPUTEMODE_PROHIBITED == kComputeProhibited &&
              CU_COMPUTEMODE_EXCLUSIVE_PROCESS == kComputeExclusive);
static_assert(CU_MEMHOSTREGISTER_PORTABLE == kHostRegisterPortable &&
              CU_MEMHOSTREGISTER_READ_ONLY == kHostRegisterReadOnly &&
              CU_MEMHOSTALLOC_PORTABLE == kHostAllocPortable &&
              CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS == kIpcLazyPeerAccess &&
              CU_STREAM_NON_BLOCKING == kStreamNonBlocking &&
              CU_EVENT_DISABLE_TIMING == kEventDisableTiming &&
              CU_EVENT_INTERPROCESS == kEventInterprocess);
static_assert(sizeof(CUmemAllocationProp) == sizeof(AllocationProperties) &&
              offsetof(CUmemAllocationProp, requestedHandleTypes) ==
                  offsetof(AllocationProperties, handle_types) &&
              offsetof(CUmemAllocationProp, location) == offsetof(AllocationProperties, location) &&
              offsetof(CUmemAllocationProp, allocFlags) == offsetof(AllocationProperties, flags) &&
              sizeof(CUmemLocation) == sizeof(Location) &&
              sizeof(CUmemAccessDesc) == sizeof(AccessDescription) &&
              offsetof(CUmemAccessDesc, flags) == offsetof(AccessDescription, flags) &&
              sizeof(CUmemGenericAllocationHandle) == sizeof(AllocationHandle));
static_assert(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED == kAttributeVirtualMemory &&
              CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED ==
                  kAttributeDescriptors &&
              CU_MEM_LOCATION_TYPE_DEVICE == kLocationDevice &&
              CU_MEM_ALLOCATION_TYPE_PINNED == kAllocationPinned &&
              CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR == kHandleDescriptor &&
              CU_MEM_ACCESS_FLAGS_PROT_READWRITE == kAccessReadWrite);

template <typename T>
concept Complete = requires {
  sizeof(T);
};

// Whether a caller passes both alike: numbers, handles, and what is pointed at, by their sizes.
template <typename Ours, typename Theirs>
constexpr bool PassedAlike() {
  if (sizeof(Ours) != sizeof(Theirs) || std::is_pointer_v<Ours> != std::is_pointer_v<Theirs> ||
      std::is_class_v<Ours> != std::is_class_v<Theirs>) {
    return false;
  }
  using OursAt = std::remove_pointer_t<Ours>;
  using TheirsAt = std::remove_pointer_t<Theirs>;
  if constexpr (std::is_pointer_v<Ours> && Complete<OursAt> && Complete<TheirsAt>) {
    return sizeof(OursAt) == sizeof(TheirsAt) &&
           std::is_const_v<OursAt> == std::is_const_v<TheirsAt>;
  }
  return true;
}

template <typename... Ours, typename... Theirs>
constexpr bool CalledAlike(Result (*)(Ours...), CUresult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) == sizeof...(Theirs)) {
    return (PassedAlike<Ours, Theirs>() && ...);
  } else {
    return false;
  }
}

// cuda.h gives a function's name to its newest form, as the driver's entry-point API does for a
// version.
#define PENSTOCK_CUDA_SAME_CALL(name, parameters)                                           \
  static_assert(CalledAlike(decltype(Driver::name){nullptr}, decltype(&cu##name){nullptr}), \
                "cu" #name);
PENSTOCK_CUDA_FUNCTIONS(PENSTOCK_CUDA_SAME_CALL)
#undef PENSTOCK_CUDA_SAME_CALL
#endif

}  // namespace
}  // namespace penstock::cuda
