// A CUDA driver that needs no device: a library with the entry point of libcuda.so.1, over the
// memory of the host. Tests load it in the driver's place (PENSTOCK_CUDA_DRIVER), so that they go
// through the real loader, real sockets and several processes.
//
// What is enqueued is done at once, or, with `hold`, when the hold ends: so one sees what waits for
// what. Device memory is a memory file, which another process opens through /proc.
// $PENSTOCK_FAKE_CUDA sets, as "name=number,…", and fake_cuda_set() changes:
//
//   init        what cuInit returns                    devices     how many there are (1)
//   version     the driver's (12080)                   memory      bytes of the device (1 GiB)
//   read_only   whether such memory is registered (1)  register    what cuMemHostRegister returns
//   ipc_memory  what cuIpcOpenMemHandle returns        ipc_event   what cuIpcOpenEventHandle returns
//   lost_after  the device is lost behind that many copies (-1: never)
//   hold        what is enqueued waits                 never       no event is ever over
//   missing     1: cuMemAlloc is not there             descriptors whether memory may be shared by them (1)
//   pools       whether it has memory pools (1)        ipc_events  whether processes may share events (1)
//   create      what cuMemCreate returns               import      what cuMemImportFromShareableHandle returns
//   host_pages  whether it goes by the host's page     context     what cuDevicePrimaryCtxRetain returns
//               tables (0)                             mode        its compute mode (0)
//
// fake_cuda_get() reads these and counters: copies, registered, launches, allocated (bytes),
// contexts, mapped (bytes), host_buffers.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "cuda/driver.h"
#include "tests/cuda/expand_on_host.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

using namespace penstock::cuda;

constexpr Result kInvalidValue = 1;
constexpr Result kLost = 214;  // CUDA_ERROR_ECC_UNCORRECTABLE
constexpr Result kNotFound = 500;

// An event's state: in memory that other processes may map.
struct SharedEvent {
  std::atomic<uint64_t> recorded;
  std::atomic<uint64_t> done;
};

struct FakeEvent {
  SharedEvent* shared;
  int fd;
};

// What travels in the 64 bytes of a handle.
struct Handle {
  int32_t pid;
  int32_t fd;
  uint64_t bytes;
};

struct Allocation {
  int fd;
  size_t bytes;
  bool opened;  // of another process
  bool of_pool = false;
};

struct State {
  std::mutex mutex;
  std::map<std::string, int64_t> numbers = {
      {"devices", 1},     {"version", 12080}, {"memory", 1 << 30}, {"read_only", 1},
      {"lost_after", -1}, {"descriptors", 1}, {"pools", 1},        {"ipc_events", 1},
  };
  std::map<Address, Allocation> allocations;
  std::map<AllocationHandle, Allocation> shared;  // by descriptor
  AllocationHandle next_shared = 1;
  std::map<void*, size_t> registered;
  std::deque<std::function<void()>> queue;

  int64_t& operator[](const char* name) { return numbers[name]; }
};

State& Fake() {
  static State* state = [] {
    auto* made = new State;
    const char* given = std::getenv("PENSTOCK_FAKE_CUDA");
    std::string text = given != nullptr ? given : "";
    while (!text.empty()) {
      const std::string one = text.substr(0, text.find(','));
      text.erase(0, one.size() + 1);
      const size_t equals = one.find('=');
      if (equals != std::string::npos) {
        made->numbers[one.substr(0, equals)] = std::atoll(one.c_str() + equals + 1);
      }
    }
    return made;
  }();
  return *state;
}

bool IsLost(State& fake) { return fake["lost_after"] >= 0 && fake["copies"] > fake["lost_after"]; }

void RunQueue(State& fake) {
  while (!fake.queue.empty()) {
    fake.queue.front()();
    fake.queue.pop_front();
  }
}

Result Enqueue(std::function<void()> work) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (IsLost(fake)) return kLost;
  fake.queue.push_back(std::move(work));
  if (fake["hold"] == 0) RunQueue(fake);
  return kSuccess;
}

void* MapFile(int fd, size_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

int OpenOther(const Handle& handle) {
  const std::string path =
      "/proc/" + std::to_string(handle.pid) + "/fd/" + std::to_string(handle.fd);
  return open(path.c_str(), O_RDWR | O_CLOEXEC);
}

template <typename To>
void Put(const Handle& handle, To* to) {
  std::memset(to, 0, sizeof *to);
  std::memcpy(to, &handle, sizeof handle);
}

Result Init(unsigned) { return static_cast<Result>(Fake()["init"]); }
Result DriverGetVersion(int32_t* version) {
  *version = static_cast<int32_t>(Fake()["version"]);
  return kSuccess;
}
Result GetErrorName(Result error, const char** name) {
  *name = error == kErrorOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == kLost           ? "CUDA_ERROR_ECC_UNCORRECTABLE"
                                     : "CUDA_ERROR_FAKE";
  return kSuccess;
}
Result DeviceGetCount(int32_t* count) {
  *count = static_cast<int32_t>(Fake()["devices"]);
  return kSuccess;
}
Result DeviceGet(DeviceNumber* device, int32_t ordinal) {
  *device = ordinal;
  return kSuccess;
}
Result DeviceGetAttribute(int32_t* value, int32_t attribute, DeviceNumber) {
  State& fake = Fake();
  *value = static_cast<int32_t>(attribute == kAttributeReadOnlyHostRegister ? fake["read_only"]
                                : attribute == kAttributeHostPageTables     ? fake["host_pages"]
                                : attribute == kAttributeComputeMode        ? fake["mode"]
                                : attribute == kAttributeDescriptors        ? fake["descriptors"]
                                : attribute == kAttributeMemoryPools        ? fake["pools"]
                                : attribute == kAttributeIpcEvents          ? fake["ipc_events"]
                                                                            : 1);
  return kSuccess;
}
Result DeviceGetUuid(Uuid* uuid, DeviceNumber device) {
  *uuid = {};
  uuid->bytes[0] = static_cast<uint8_t>(device + 1);
  return kSuccess;
}
Result DevicePrimaryCtxRetain(ContextHandle* context, DeviceNumber) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (const int64_t result = fake["context"]; result != 0) return static_cast<Result>(result);
  ++fake["contexts"];
  *context = &fake;
  return kSuccess;
}
Result DevicePrimaryCtxRelease(DeviceNumber) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  --fake["contexts"];
  return kSuccess;
}
thread_local int entered = 0;
Result CtxPushCurrent(ContextHandle) {
  ++entered;
  return kSuccess;
}
Result CtxPopCurrent(ContextHandle* context) {
  *context = nullptr;
  --entered;
  return kSuccess;
}
Result MemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  *total_bytes = static_cast<size_t>(fake["memory"]);
  *free_bytes = *total_bytes - static_cast<size_t>(fake["allocated"]);
  return kSuccess;
}
Result MemAlloc(Address* address, size_t bytes) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (entered == 0) return 201;  // CUDA_ERROR_INVALID_CONTEXT
  if (IsLost(fake)) return kLost;
  if (bytes == 0) return kInvalidValue;
  if (fake["allocated"] + static_cast<int64_t>(bytes) > fake["memory"]) return kErrorOutOfMemory;
  const int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kErrorOutOfMemory;
  void* memory = MapFile(fd, bytes);
  if (memory == nullptr) return kErrorOutOfMemory;
  *address = reinterpret_cast<Address>(memory);
  fake.allocations[*address] = {fd, bytes, false};
  fake["allocated"] += static_cast<int64_t>(bytes);
  return kSuccess;
}
Result Give(Address address, bool opened) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  const auto found = fake.allocations.find(address);
  if (found == fake.allocations.end() || found->second.opened != opened) return kInvalidValue;
  munmap(reinterpret_cast<void*>(address), found->second.bytes);
  close(found->second.fd);
  if (!opened) fake["allocated"] -= static_cast<int64_t>(found->second.bytes);
  fake.allocations.erase(found);
  return kSuccess;
}
Result MemFree(Address address) { return Give(address, false); }
Result MemAllocAsync(Address* address, size_t bytes, StreamHandle) {
  State& fake = Fake();
  if (fake["pools"] == 0) return kErrorNotSupported;
  const Result result = MemAlloc(address, bytes);
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (result == kSuccess) fake.allocations[*address].of_pool = true;
  return result;
}
Result MemFreeAsync(Address address, StreamHandle) {
  {
    State& fake = Fake();
    std::lock_guard<std::mutex> lock(fake.mutex);
    const auto found = fake.allocations.find(address);
    if (found == fake.allocations.end() || !found->second.of_pool) return kInvalidValue;
  }
  return Enqueue([address] {
    State& fake = Fake();  // locked by the caller
    const auto found = fake.allocations.find(address);
    if (found == fake.allocations.end()) return;
    munmap(reinterpret_cast<void*>(address), found->second.bytes);
    close(found->second.fd);
    fake["allocated"] -= static_cast<int64_t>(found->second.bytes);
    fake.allocations.erase(found);
  });
}
Result MemHostAlloc(void** memory, size_t bytes, unsigned) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  *memory = std::aligned_alloc(4096, (bytes + 4095) & ~size_t{4095});
  if (*memory == nullptr) return kErrorOutOfMemory;
  ++fake["host_buffers"];
  return kSuccess;
}
Result MemFreeHost(void* memory) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  --fake["host_buffers"];
  std::free(memory);
  return kSuccess;
}
// Whether this process may write the page at the address.
bool MayWrite(const void* memory) {
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    uint64_t begin = 0;
    uint64_t end = 0;
    char rights[5] = {};
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &begin, &end, rights) != 3)
      continue;
    const auto address = reinterpret_cast<uintptr_t>(memory);
    if (begin <= address && address < end) return rights[1] == 'w';
  }
  return false;
}
Result MemHostRegister(void* memory, size_t bytes, unsigned flags) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (const int64_t result = fake["register"]; result != 0) return static_cast<Result>(result);
  if ((flags & kHostRegisterReadOnly) != 0 && fake["read_only"] == 0) return kErrorNotSupported;
  // The driver pins pages for writing unless it is told not to, or has no need to.
  if ((flags & kHostRegisterReadOnly) == 0 && fake["host_pages"] == 0 && !MayWrite(memory))
    return kInvalidValue;
  if (fake.registered.count(memory) != 0) return kErrorAlreadyRegistered;
  fake.registered[memory] = bytes;
  ++fake["registered"];
  return kSuccess;
}
Result MemHostUnregister(void* memory) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (fake.registered.erase(memory) == 0) return kInvalidValue;
  --fake["registered"];
  return kSuccess;
}
Result Copy(void* to, const void* from, size_t bytes) {
  {
    State& fake = Fake();
    std::lock_guard<std::mutex> lock(fake.mutex);
    if (entered == 0) return 201;
    ++fake["copies"];
  }
  return Enqueue([=] { std::memcpy(to, from, bytes); });
}
Result MemcpyHtoDAsync(Address to, const void* from, size_t bytes, StreamHandle) {
  return Copy(reinterpret_cast<void*>(to), from, bytes);
}
Result MemcpyDtoHAsync(void* to, Address from, size_t bytes, StreamHandle) {
  return Copy(to, reinterpret_cast<const void*>(from), bytes);
}
Result MemcpyDtoDAsync(Address to, Address from, size_t bytes, StreamHandle) {
  return Copy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
}
Result StreamCreate(StreamHandle* stream, unsigned) {
  *stream = new int(0);
  return kSuccess;
}
Result StreamDestroy(StreamHandle stream) {
  delete static_cast<int*>(stream);
  return kSuccess;
}
Result StreamSynchronize(StreamHandle) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  RunQueue(fake);
  return IsLost(fake) ? kLost : kSuccess;
}
bool IsOver(const SharedEvent& event) { return event.done == event.recorded; }
Result StreamWaitEvent(StreamHandle, EventHandle event, unsigned) {
  // A device would wait; here the caller does, for five seconds at most.
  const SharedEvent& shared = *static_cast<FakeEvent*>(event)->shared;
  for (int i = 0; i < 5000 && !IsOver(shared); ++i) usleep(1000);
  return Enqueue([] {});
}
Result EventCreate(EventHandle* event, unsigned) {
  const int fd = memfd_create("fake-cuda-event", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, sizeof(SharedEvent)) != 0) return kErrorOutOfMemory;
  *event = new FakeEvent{static_cast<SharedEvent*>(MapFile(fd, sizeof(SharedEvent))), fd};
  return kSuccess;
}
Result EventDestroy(EventHandle event) {
  auto* fake_event = static_cast<FakeEvent*>(event);
  {
    State& fake = Fake();
    std::lock_guard<std::mutex> lock(fake.mutex);
    RunQueue(fake);  // what is enqueued may still name it
  }
  munmap(fake_event->shared, sizeof(SharedEvent));
  close(fake_event->fd);
  delete fake_event;
  return kSuccess;
}
Result EventRecord(EventHandle event, StreamHandle) {
  SharedEvent* shared = static_cast<FakeEvent*>(event)->shared;
  const uint64_t number = ++shared->recorded;
  return Enqueue([shared, number] { shared->done = number; });
}
Result EventQuery(EventHandle event) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (IsLost(fake)) return kLost;
  if (fake["never"] != 0) return kErrorNotReady;
  return IsOver(*static_cast<FakeEvent*>(event)->shared) ? kSuccess : kErrorNotReady;
}
Result IpcGetMemHandle(IpcMemory* handle, Address address) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  const auto found = fake.allocations.find(address);
  if (found == fake.allocations.end()) return kInvalidValue;
  Put({getpid(), found->second.fd, found->second.bytes}, handle);
  return kSuccess;
}
Result IpcOpenMemHandle(Address* address, IpcMemory handle, unsigned) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (const int64_t result = fake["ipc_memory"]; result != 0) return static_cast<Result>(result);
  Handle other;
  std::memcpy(&other, &handle, sizeof other);
  const int fd = OpenOther(other);
  void* memory = fd < 0 ? nullptr : MapFile(fd, other.bytes);
  if (memory == nullptr) return kInvalidValue;
  *address = reinterpret_cast<Address>(memory);
  fake.allocations[*address] = {fd, other.bytes, true};
  return kSuccess;
}
Result IpcCloseMemHandle(Address address) { return Give(address, true); }
Result IpcGetEventHandle(IpcEvent* handle, EventHandle event) {
  Put({getpid(), static_cast<FakeEvent*>(event)->fd, sizeof(SharedEvent)}, handle);
  return kSuccess;
}
Result IpcOpenEventHandle(EventHandle* event, IpcEvent handle) {
  if (const int64_t result = Fake()["ipc_event"]; result != 0) return static_cast<Result>(result);
  Handle other;
  std::memcpy(&other, &handle, sizeof other);
  const int fd = OpenOther(other);
  void* memory = fd < 0 ? nullptr : MapFile(fd, sizeof(SharedEvent));
  if (memory == nullptr) return kInvalidValue;
  *event = new FakeEvent{static_cast<SharedEvent*>(memory), fd};
  return kSuccess;
}
constexpr size_t kGranularity = 2 << 20;
Result MemGetAllocationGranularity(size_t* bytes, const AllocationProperties* properties, int32_t) {
  if (properties->type != kAllocationPinned || properties->location.type != kLocationDevice)
    return kInvalidValue;
  *bytes = kGranularity;
  return kSuccess;
}
Result Keep(State& fake, const Allocation& allocation, AllocationHandle* handle) {
  *handle = fake.next_shared++;
  fake.shared[*handle] = allocation;
  return kSuccess;
}
Result MemCreate(AllocationHandle* handle, size_t bytes, const AllocationProperties* properties,
                 uint64_t) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (const int64_t result = fake["create"]; result != 0) return static_cast<Result>(result);
  if (bytes % kGranularity != 0 || properties->handle_types != kHandleDescriptor)
    return kInvalidValue;
  if (fake["allocated"] + static_cast<int64_t>(bytes) > fake["memory"]) return kErrorOutOfMemory;
  const int fd = memfd_create("fake-cuda", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(bytes)) != 0) return kErrorOutOfMemory;
  fake["allocated"] += static_cast<int64_t>(bytes);
  return Keep(fake, {fd, bytes, false}, handle);
}
Result MemRelease(AllocationHandle handle) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  const auto found = fake.shared.find(handle);
  if (found == fake.shared.end()) return kInvalidValue;
  close(found->second.fd);
  if (!found->second.opened) fake["allocated"] -= static_cast<int64_t>(found->second.bytes);
  fake.shared.erase(found);
  return kSuccess;
}
Result MemAddressReserve(Address* address, size_t bytes, size_t, Address, uint64_t) {
  void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *address = reinterpret_cast<Address>(memory);
  return memory == MAP_FAILED ? kErrorOutOfMemory : kSuccess;
}
Result MemAddressFree(Address address, size_t bytes) {
  return munmap(reinterpret_cast<void*>(address), bytes) == 0 ? kSuccess : kInvalidValue;
}
Result MemMap(Address address, size_t bytes, size_t offset, AllocationHandle handle, uint64_t) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  const auto found = fake.shared.find(handle);
  if (found == fake.shared.end() || offset != 0 || bytes != found->second.bytes)
    return kInvalidValue;
  fake["mapped"] += static_cast<int64_t>(bytes);
  // Nobody may use it before MemSetAccess.
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE, MAP_SHARED | MAP_FIXED,
              found->second.fd, 0) == MAP_FAILED
             ? kInvalidValue
             : kSuccess;
}
Result MemUnmap(Address address, size_t bytes) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  fake["mapped"] -= static_cast<int64_t>(bytes);
  return mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED
             ? kInvalidValue
             : kSuccess;
}
Result MemSetAccess(Address address, size_t bytes, const AccessDescription* access, size_t count) {
  if (count != 1 || access->flags != kAccessReadWrite) return kInvalidValue;
  return mprotect(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE) == 0
             ? kSuccess
             : kInvalidValue;
}
// As a driver may: a program that is started inherits it.
Result MemExportToShareableHandle(void* descriptor, AllocationHandle handle, int32_t type,
                                  uint64_t) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  const auto found = fake.shared.find(handle);
  if (found == fake.shared.end() || type != kHandleDescriptor) return kInvalidValue;
  *static_cast<int*>(descriptor) = dup(found->second.fd);
  return kSuccess;
}
Result MemImportFromShareableHandle(AllocationHandle* handle, void* descriptor, int32_t) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  if (const int64_t result = fake["import"]; result != 0) return static_cast<Result>(result);
  const int fd =
      fcntl(static_cast<int>(reinterpret_cast<intptr_t>(descriptor)), F_DUPFD_CLOEXEC, 0);
  struct stat found = {};
  if (fd < 0 || fstat(fd, &found) != 0) return kInvalidValue;
  return Keep(fake, {fd, static_cast<size_t>(found.st_size), true}, handle);
}
Result ModuleLoadData(ModuleHandle* module, const void*) {
  *module = &Fake();
  return kSuccess;
}
Result ModuleUnload(ModuleHandle) { return kSuccess; }
Result ModuleGetFunction(FunctionHandle* function, ModuleHandle, const char* name) {
  const HostKernel* kernel = FindHostKernel(name);
  if (kernel == nullptr) return kNotFound;
  *function = const_cast<HostKernel*>(kernel);
  return kSuccess;
}
Result LaunchKernel(FunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                    unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                    StreamHandle, void** arguments, void**) {
  {
    State& fake = Fake();
    std::lock_guard<std::mutex> lock(fake.mutex);
    ++fake["launches"];
  }
  const auto* kernel = static_cast<const HostKernel*>(function);
  // As on a device, the arguments are copied when it is launched.
  const auto* bytes = static_cast<const uint8_t*>(arguments[0]);
  std::vector<uint8_t> copy(bytes, bytes + kernel->argument_bytes);
  const Grid grid = {grid_x, block_x};
  return Enqueue([=] { kernel->run(copy.data(), grid); });
}

}  // namespace

EXPORT void fake_cuda_set(const char* name, int64_t number) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  fake[name] = number;
  if (fake["hold"] == 0) RunQueue(fake);
}

EXPORT int64_t fake_cuda_get(const char* name) {
  State& fake = Fake();
  std::lock_guard<std::mutex> lock(fake.mutex);
  return fake[name];
}

EXPORT Result cuDriverGetVersion(int32_t* version) { return DriverGetVersion(version); }

EXPORT Result cuGetProcAddress_v2(const char* symbol, void** function, int32_t version,
                                  uint64_t flags, int32_t*) {
  *function = nullptr;
  // As of CUDA 12.0, with the device's null stream, whatever the program that loads this was
  // compiled for.
  if (version != 12000 || flags != 1) return kInvalidValue;
  const std::string wanted = symbol;
  if (wanted == "cuMemAlloc" && Fake()["missing"] != 0) return kNotFound;
#define FIND(name, parameters) \
  if (wanted == "cu" #name)    \
    *function = reinterpret_cast<void*>(static_cast<Result(*) parameters>(&name));
  PENSTOCK_CUDA_FUNCTIONS(FIND)
#undef FIND
  return *function == nullptr ? kNotFound : kSuccess;
}
