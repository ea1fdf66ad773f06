// The one table of CUDA functions: every call that this project makes into CUDA goes through it, so
// that a test can fill it with its own, and no program is linked to a CUDA library.
//
// LoadDriver() takes the functions from the machine's driver library, which is loaded when it is
// called and not before, by the driver's own entry-point API (cuGetProcAddress). What a program
// without a driver gets is a sentence.
//
// The types are CUDA's, declared anew, so that this builds without the toolkit; tests/cuda compares
// them with cuda.h where there is one.
//
// Threads:  constant once it is filled.
// Owns:     nothing; the library stays loaded until the process ends.
// Limits:   drivers of CUDA 12.0 or newer.
// Cost:     loading takes milliseconds, cuInit some hundred where there are devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "ring/status.h"

namespace penstock::cuda {

using Result = int32_t;             // CUresult
using DeviceNumber = int32_t;       // CUdevice
using Address = uint64_t;           // CUdeviceptr
using ContextHandle = void*;        // CUcontext
using StreamHandle = void*;         // CUstream; null is the legacy default stream
using EventHandle = void*;          // CUevent
using ModuleHandle = void*;         // CUmodule
using FunctionHandle = void*;       // CUfunction
using AllocationHandle = uint64_t;  // CUmemGenericAllocationHandle

inline constexpr size_t kIpcHandleBytes = 64;
struct IpcMemory {  // CUipcMemHandle
  uint8_t bytes[kIpcHandleBytes];
};
struct IpcEvent {  // CUipcEventHandle
  uint8_t bytes[kIpcHandleBytes];
};
struct Uuid {  // CUuuid
  uint8_t bytes[16];
};

struct Location {  // CUmemLocation
  int32_t type;
  int32_t id;
};
struct AllocationProperties {  // CUmemAllocationProp
  int32_t type;
  int32_t handle_types;
  Location location;
  void* of_windows;
  uint8_t flags[8];
};
struct AccessDescription {  // CUmemAccessDesc
  Location location;
  int32_t flags;
};

inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorOutOfMemory = 2;
inline constexpr Result kErrorStubLibrary = 34;
inline constexpr Result kErrorDeviceUnavailable = 46;
inline constexpr Result kErrorNoDevice = 100;
inline constexpr Result kErrorInvalidDevice = 101;
inline constexpr Result kErrorNotReady = 600;
inline constexpr Result kErrorAlreadyRegistered = 712;
inline constexpr Result kErrorNotSupported = 801;

inline constexpr int32_t kAttributeMultiprocessors = 16;
inline constexpr int32_t kAttributeComputeMode = 20;
inline constexpr int32_t kAttributeComputeCapabilityMajor = 75;
inline constexpr int32_t kAttributeComputeCapabilityMinor = 76;
inline constexpr int32_t kAttributeHostPageTables = 100;
inline constexpr int32_t kAttributeVirtualMemory = 102;
inline constexpr int32_t kAttributeDescriptors = 103;
inline constexpr int32_t kAttributeReadOnlyHostRegister = 113;
inline constexpr int32_t kAttributeMemoryPools = 115;
inline constexpr int32_t kAttributeIpcEvents = 125;

// Values of kAttributeComputeMode in which more processes than one may not use the device.
inline constexpr int32_t kComputeProhibited = 2;
inline constexpr int32_t kComputeExclusive = 3;

inline constexpr int32_t kLocationDevice = 1;
inline constexpr int32_t kAllocationPinned = 1;
inline constexpr int32_t kHandleDescriptor = 1;
inline constexpr int32_t kAccessReadWrite = 3;
inline constexpr unsigned kHostRegisterPortable = 0x01;
inline constexpr unsigned kHostRegisterReadOnly = 0x08;
inline constexpr unsigned kHostAllocPortable = 0x01;
inline constexpr unsigned kIpcLazyPeerAccess = 0x01;
inline constexpr unsigned kStreamNonBlocking = 0x01;
inline constexpr unsigned kEventDisableTiming = 0x02;
inline constexpr unsigned kEventInterprocess = 0x04;

// X(name, parameters): `cu` and the name is the driver's function.
#define PENSTOCK_CUDA_FUNCTIONS(X)                                                                \
  X(Init, (unsigned flags))                                                                       \
  X(DriverGetVersion, (int32_t * version))                                                        \
  X(GetErrorName, (Result error, const char** name))                                              \
  X(DeviceGetCount, (int32_t * count))                                                            \
  X(DeviceGet, (DeviceNumber * device, int32_t ordinal))                                          \
  X(DeviceGetAttribute, (int32_t * value, int32_t attribute, DeviceNumber device))                \
  X(DeviceGetUuid, (Uuid * uuid, DeviceNumber device))                                            \
  X(DevicePrimaryCtxRetain, (ContextHandle * context, DeviceNumber device))                       \
  X(DevicePrimaryCtxRelease, (DeviceNumber device))                                               \
  X(CtxPushCurrent, (ContextHandle context))                                                      \
  X(CtxPopCurrent, (ContextHandle * context))                                                     \
  X(MemGetInfo, (size_t * free_bytes, size_t * total_bytes))                                      \
  X(MemAlloc, (Address * address, size_t bytes))                                                  \
  X(MemFree, (Address address))                                                                   \
  X(MemAllocAsync, (Address * address, size_t bytes, StreamHandle stream))                        \
  X(MemFreeAsync, (Address address, StreamHandle stream))                                         \
  X(MemHostAlloc, (void** memory, size_t bytes, unsigned flags))                                  \
  X(MemFreeHost, (void* memory))                                                                  \
  X(MemHostRegister, (void* memory, size_t bytes, unsigned flags))                                \
  X(MemHostUnregister, (void* memory))                                                            \
  X(MemcpyHtoDAsync, (Address to, const void* from, size_t bytes, StreamHandle stream))           \
  X(MemcpyDtoHAsync, (void* to, Address from, size_t bytes, StreamHandle stream))                 \
  X(MemcpyDtoDAsync, (Address to, Address from, size_t bytes, StreamHandle stream))               \
  X(StreamCreate, (StreamHandle * stream, unsigned flags))                                        \
  X(StreamDestroy, (StreamHandle stream))                                                         \
  X(StreamSynchronize, (StreamHandle stream))                                                     \
  X(StreamWaitEvent, (StreamHandle stream, EventHandle event, unsigned flags))                    \
  X(EventCreate, (EventHandle * event, unsigned flags))                                           \
  X(EventDestroy, (EventHandle event))                                                            \
  X(EventRecord, (EventHandle event, StreamHandle stream))                                        \
  X(EventQuery, (EventHandle event))                                                              \
  X(IpcGetMemHandle, (IpcMemory * handle, Address address))                                       \
  X(IpcOpenMemHandle, (Address * address, IpcMemory handle, unsigned flags))                      \
  X(IpcCloseMemHandle, (Address address))                                                         \
  X(IpcGetEventHandle, (IpcEvent * handle, EventHandle event))                                    \
  X(IpcOpenEventHandle, (EventHandle * event, IpcEvent handle))                                   \
  X(MemGetAllocationGranularity,                                                                  \
    (size_t * bytes, const AllocationProperties* properties, int32_t option))                     \
  X(MemCreate, (AllocationHandle * allocation, size_t bytes,                                      \
                const AllocationProperties* properties, uint64_t flags))                          \
  X(MemRelease, (AllocationHandle allocation))                                                    \
  X(MemAddressReserve,                                                                            \
    (Address * address, size_t bytes, size_t alignment, Address wanted, uint64_t flags))          \
  X(MemAddressFree, (Address address, size_t bytes))                                              \
  X(MemMap,                                                                                       \
    (Address address, size_t bytes, size_t offset, AllocationHandle allocation, uint64_t flags))  \
  X(MemUnmap, (Address address, size_t bytes))                                                    \
  X(MemSetAccess, (Address address, size_t bytes, const AccessDescription* access, size_t count)) \
  X(MemExportToShareableHandle,                                                                   \
    (void* handle, AllocationHandle allocation, int32_t type, uint64_t flags))                    \
  X(MemImportFromShareableHandle, (AllocationHandle * allocation, void* handle, int32_t type))    \
  X(ModuleLoadData, (ModuleHandle * module, const void* image))                                   \
  X(ModuleUnload, (ModuleHandle module))                                                          \
  X(ModuleGetFunction, (FunctionHandle * function, ModuleHandle module, const char* name))        \
  X(LaunchKernel, (FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,    \
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,   \
                   StreamHandle stream, void** arguments, void** extra))

struct Driver {
#define PENSTOCK_CUDA_MEMBER(name, parameters) Result(*name) parameters = nullptr;
  PENSTOCK_CUDA_FUNCTIONS(PENSTOCK_CUDA_MEMBER)
#undef PENSTOCK_CUDA_MEMBER
};

// $PENSTOCK_CUDA_DRIVER, else libcuda.so.1.
std::string DriverLibrary();

// Fills the table from a driver library and initialises it. kFailedPrecondition, with the reason,
// where there is no driver, none that works, one that is too old, or no device.
ring::Status LoadDriver(const std::string& library, Driver* out);

// An error of a call: "WHAT: CUDA_ERROR_… (number)". kResourceExhausted for lack of memory,
// kUnavailable for everything that a device may do by itself.
ring::Status CallError(const Driver& driver, Result result, const std::string& what);

}  // namespace penstock::cuda
