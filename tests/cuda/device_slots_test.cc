// The table of a device ring as a client reads it: sound ones show the daemon's bytes, torn and
// forged ones are errors.
#include "client/c/device_slots.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "ring/descriptor.h"
#include "tests/cuda/fake.h"
#include "tests/support/catch.h"

namespace penstock_client {
namespace {

using penstock::cuda::Fake;
using penstock::cuda::SharedMemory;
using penstock::ring::Code;
using penstock::ring::Descriptor;
using penstock::ring::DeviceTable;
using penstock::ring::DeviceTensor;
using penstock::ring::Status;

constexpr uint32_t kSlots = 3;
constexpr uint64_t kStride = 512;

// A table of two tensors over memory of the fake driver, shared by a handle or by a descriptor, and
// what holds it.
struct Forged {
  explicit Forged(Fake& fake, bool by_descriptor = false) : device(fake.Open()) {
    fake.Set("descriptors", by_descriptor);
    REQUIRE(SharedMemory::Create(device, kSlots * kStride, &memory).ok());
    REQUIRE((memory->descriptor() >= 0) == by_descriptor);
    std::memset(reinterpret_cast<void*>(memory->address()), 7, kSlots * kStride);
    table.magic = penstock::ring::kDeviceMagic;
    table.version = penstock::ring::kDeviceVersion;
    table.table_bytes = sizeof table;
    std::memcpy(table.uuid, device->uuid().bytes, sizeof table.uuid);
    table.driver_version = device->driver_version();
    table.num_tensors = 2;
    table.slots = kSlots;
    table.tensor_bytes = sizeof(DeviceTensor);
    table.slot_stride = kStride;
    table.memory_bytes = kSlots * kStride;
    if (by_descriptor) {
      table.mapped_bytes = memory->bytes();
    } else {
      penstock::cuda::IpcMemory handle;
      REQUIRE(memory->Handle(&handle).ok());
      std::memcpy(table.memory, handle.bytes, sizeof handle.bytes);
    }
    for (uint32_t slot = 0; slot < kSlots; ++slot) {
      REQUIRE(penstock::cuda::Event::Create(device, penstock::cuda::kEventInterprocess,
                                            &events.emplace_back())
                  .ok());
      penstock::cuda::IpcEvent event;
      REQUIRE(events.back()->Handle(&event).ok());
      std::memcpy(table.events[slot], event.bytes, sizeof event.bytes);
    }
    tensors.resize(2);
    tensors[0].on_device = 1;
    tensors[0].dtype = 12;  // float32
    tensors[0].offset = 256;
    tensors[0].bytes = 4 * 5 * 4;
    tensors[0].row_bytes = 5 * 4;
    tensors[0].ndim = 2;
    tensors[0].shape[0] = 4;
    tensors[0].shape[1] = 5;
  }
  Status Open(std::unique_ptr<DeviceSlots>* out, size_t bytes_left_out = 0) const {
    Descriptor file(memfd_create("forged", MFD_CLOEXEC));
    std::vector<uint8_t> bytes(sizeof table + tensors.size() * sizeof tensors[0]);
    std::memcpy(bytes.data(), &table, sizeof table);
    std::memcpy(bytes.data() + sizeof table, tensors.data(), bytes.size() - sizeof table);
    const size_t count = bytes.size() - bytes_left_out;
    REQUIRE(write(file.get(), bytes.data(), count) == static_cast<ssize_t>(count));
    return DeviceSlots::Open(device, file.get(), sent ? memory->descriptor() : -1, 2, kSlots, out);
  }

  std::shared_ptr<const penstock::cuda::Device> device;
  std::unique_ptr<SharedMemory> memory;
  bool sent = true;  // the descriptor, where there is one
  std::vector<std::unique_ptr<penstock::cuda::Event>> events;
  DeviceTable table = {};
  std::vector<DeviceTensor> tensors;
};

TEST_CASE("a sound table opens the memory") {
  Fake fake;
  const int64_t mapped = fake["mapped"];
  {
    Forged forged(fake, GENERATE(false, true));
    std::unique_ptr<DeviceSlots> slots;
    const Status status = forged.Open(&slots);
    INFO(status.message);
    REQUIRE(status.ok());
    CHECK(slots->Find(2, 0) - slots->Find(0, 0) == 2 * kStride);
    CHECK(slots->Find(0, 0) - 256 != forged.memory->address());
    CHECK(*reinterpret_cast<const uint8_t*>(slots->Find(2, 0)) == 7);
    *reinterpret_cast<uint8_t*>(forged.memory->address() + 256) = 9;
    CHECK(*reinterpret_cast<const uint8_t*>(slots->Find(0, 0)) == 9);
    Status error;
    CHECK(slots->Look(2, &error) == penstock::cuda::Event::State::kOver);
  }
  CHECK(fake["mapped"] == mapped);
  CHECK(fake["allocated"] == 0);
}

TEST_CASE("memory of a descriptor that is not there, too small or refused is an error") {
  Fake fake;
  Forged forged(fake, /*by_descriptor=*/true);
  Code code = Code::kInternal;
  const char* words = "malformed";
  SECTION("not sent") {
    forged.sent = false;
    words = "the memory's descriptor is missing";
  }
  SECTION("smaller than the slots") { forged.table.mapped_bytes = kSlots * kStride - 1; }
  SECTION("larger than it is") {
    forged.table.mapped_bytes *= 2;
    code = Code::kUnavailable;
    words = "cannot be mapped (CUDA device 0)";
  }
  SECTION("refused") {
    fake.Set("import", 801);
    code = Code::kUnavailable;
    words = "cannot be opened (CUDA device 0)";
  }
  SECTION("refused by another driver") {
    fake.Set("import", 801);
    forged.table.driver_version = 13000;
    code = Code::kFailedPrecondition;
    words = "of version 13.0, this process's of 12.8";
  }
  const int64_t mapped = fake["mapped"];
  std::unique_ptr<DeviceSlots> slots;
  const Status status = forged.Open(&slots);
  INFO(status.message);
  CHECK(status.code == code);
  CHECK(status.message.find(words) != std::string::npos);
  CHECK(slots == nullptr);
  CHECK(fake["mapped"] == mapped);
}

TEST_CASE("a table that is not sound is an error") {
  Fake fake;
  Forged forged(fake);
  size_t left_out = 0;
  Code code = Code::kInternal;
  const char* words = "malformed";
  SECTION("magic") { forged.table.magic ^= 1; }
  SECTION("another version") {
    forged.table.version = 9;
    code = Code::kFailedPrecondition;
    words = "the client 2, the daemon 9";
  }
  SECTION("too small") { left_out = 2 * sizeof(DeviceTensor) + 1; }
  SECTION("without its tensors") { left_out = 1; }
  SECTION("other slots") { forged.table.slots = kSlots + 1; }
  SECTION("other tensors") { forged.table.num_tensors = 3; }
  SECTION("more memory than slots") { forged.table.memory_bytes += 1; }
  SECTION("a stride that wraps") { forged.table.slot_stride = UINT64_MAX / 2; }
  SECTION("a tensor behind its slot") { forged.tensors[0].offset = kStride - 79; }
  SECTION("an offset that wraps") { forged.tensors[0].offset = UINT64_MAX - 8; }
  SECTION("a size that is not that of the shape") { forged.tensors[0].bytes += 4; }
  SECTION("a negative axis") { forged.tensors[0].shape[1] = -5; }
  SECTION("a shape that wraps") { forged.tensors[0].shape[0] = INT64_MAX; }
  SECTION("too many axes") { forged.tensors[0].ndim = 18; }
  SECTION("rows of another size") { forged.tensors[0].row_bytes = 1 << 20; }
  SECTION("an unknown dtype") { forged.tensors[0].dtype = 99; }
  SECTION("another device") {
    forged.table.uuid[3] ^= 1;
    code = Code::kFailedPrecondition;
    words = "another CUDA device";
  }
  SECTION("memory that does not open") {
    fake.Set("ipc_memory", 1);
    code = Code::kUnavailable;
    words = "cannot be opened (CUDA device 0)";
  }
  SECTION("an event that does not open") {
    fake.Set("ipc_event", 1);
    code = Code::kUnavailable;
    words = "event cannot be opened";
  }
  SECTION("memory that does not open, of another driver") {
    fake.Set("ipc_memory", 1);
    forged.table.driver_version = 13000;
    code = Code::kFailedPrecondition;
    words = "of version 13.0, this process's of 12.8";
  }
  std::unique_ptr<DeviceSlots> slots;
  const Status status = forged.Open(&slots, left_out);
  INFO(status.message);
  CHECK(status.code == code);
  CHECK(status.message.find(words) != std::string::npos);
  CHECK(slots == nullptr);
}

TEST_CASE("random bytes in a table never lead out of the memory") {
  Fake fake;
  Forged sound(fake);
  std::mt19937 random(3);
  int opened = 0;
  for (int i = 0; i < 3000; ++i) {
    DeviceTable table = sound.table;
    std::vector<DeviceTensor> tensors = sound.tensors;
    // Not the handles: they are the driver's to check.
    const size_t at = random() % (128 + sizeof(DeviceTensor));
    const auto value = static_cast<uint8_t>(random());
    if (at < 128) {
      reinterpret_cast<uint8_t*>(&sound.table)[at] = value;
    } else {
      reinterpret_cast<uint8_t*>(sound.tensors.data())[at - 128] = value;
    }
    std::unique_ptr<DeviceSlots> slots;
    if (sound.Open(&slots).ok()) {
      ++opened;
      const DeviceTensor& tensor = slots->tensor(0);
      if (tensor.on_device != 0) {
        CHECK(tensor.offset + tensor.bytes <= kStride);
        CHECK(tensor.ndim <= 17);
      }
    }
    sound.table = table;
    sound.tensors = tensors;
  }
  // Some bytes do not matter, most do.
  CHECK(opened > 100);
  CHECK(opened < 2500);
}

}  // namespace
}  // namespace penstock_client
