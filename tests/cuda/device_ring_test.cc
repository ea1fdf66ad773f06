// The daemon's part of a device ring over a driver without a device, and the sink that stands
// before it.
#include "server/cuda/device_ring.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "ring/device_layout.h"
#include "server/cuda/device_ring_sink.h"
#include "tests/cuda/fake.h"
#include "tests/support/catch.h"

namespace penstock {
namespace {

using cuda::Fake;
using ring::Code;
using ring::Status;

constexpr uint8_t kImage[] = {0};

BatchTensor Tensor(const char* name, DType dtype, std::vector<int64_t> shape) {
  BatchTensor tensor;
  tensor.name = name;
  tensor.type.dtype = dtype;
  tensor.type.shape.assign(shape.begin(), shape.end());
  return tensor;
}

// Slots of three tensors as a ring lays them: images that are expanded, text that is not fixed,
// labels.
struct HostSlots {
  explicit HostSlots(int count) {
    for (int slot = 0; slot < count; ++slot) {
      memory.emplace_back(static_cast<uint8_t*>(std::aligned_alloc(4096, 4096)), &std::free);
      uint8_t* bytes = memory.back().get();
      for (int i = 0; i < 4096; ++i) bytes[i] = static_cast<uint8_t>(i * 7 + slot);
      options.slots.push_back({bytes, nullptr, bytes + 128});
    }
    options.tensors = {Tensor("image", DType::kUint8, {2, 3, 5, 3}),
                       Tensor("text", DType::kString, {2}), Tensor("label", DType::kInt64, {2})};
    options.tensors[1].kind = TensorKind::kString;
    options.expansions.resize(3);
    options.library = FAKE_CUDA;
    options.kernels = kImage;
  }

  std::vector<std::unique_ptr<uint8_t, decltype(&std::free)>> memory;
  DeviceRingOptions options;
};

// What a client sees of a ring: the table, and the memory that its handle opens.
struct Shown {
  Shown(const Fake& fake, const DeviceRing& ring) : device(fake.Open()) {
    REQUIRE(pread(ring.table_fd(), &table, sizeof table, 0) == sizeof table);
    tensors.resize(table.num_tensors);
    const size_t bytes = tensors.size() * sizeof tensors[0];
    REQUIRE(pread(ring.table_fd(), tensors.data(), bytes, sizeof table) ==
            static_cast<ssize_t>(bytes));
    cuda::IpcMemory handle;
    std::memcpy(handle.bytes, table.memory, sizeof handle.bytes);
    REQUIRE((table.mapped_bytes != 0) == (ring.memory_fd() >= 0));
    const Status status =
        table.mapped_bytes != 0
            ? cuda::SharedMemory::Open(device, ring.memory_fd(), table.mapped_bytes, &memory)
            : cuda::SharedMemory::Open(device, handle, &memory);
    INFO(status.message);
    REQUIRE(status.ok());
  }

  const uint8_t* At(uint32_t slot, uint32_t tensor) const {
    return reinterpret_cast<const uint8_t*>(memory->address()) + slot * table.slot_stride +
           tensors[tensor].offset;
  }

  std::shared_ptr<const cuda::Device> device;
  ring::DeviceTable table;
  std::vector<ring::DeviceTensor> tensors;
  std::unique_ptr<cuda::SharedMemory> memory;
};

std::unique_ptr<DeviceRing> Make(const DeviceRingOptions& options) {
  std::unique_ptr<DeviceRing> ring;
  const Status status = DeviceRing::Create(options, &ring);
  INFO(status.message);
  REQUIRE(status.ok());
  return ring;
}

TEST_CASE("slots are copied to the device, and given back") {
  Fake fake;
  // By a descriptor, by a handle, and by a handle where a driver only seems to have descriptors.
  const int way = GENERATE(0, 1, 2);
  fake.Set("descriptors", way != 1);
  fake.Set("create", way == 2 ? cuda::kErrorNotSupported : 0);
  const int64_t contexts = fake["contexts"];
  {
    HostSlots host(3);
    const auto ring = Make(host.options);
    CHECK(ring->not_pinned().empty());
    CHECK(fake["registered"] == 3);
    CHECK((ring->memory_fd() >= 0) == (way == 0));
    // A program that is started meanwhile gets no part in it.
    if (way == 0) CHECK(fcntl(ring->memory_fd(), F_GETFD) == FD_CLOEXEC);
    // A smaller piece would share its block with others.
    CHECK(ring->memory_bytes() == 2 << 20);
    CHECK(fake["allocated"] == static_cast<int64_t>(ring->memory_bytes()));
    for (uint32_t slot = 0; slot < 3; ++slot) REQUIRE(ring->Copy(slot).ok());
    const Shown shown(fake, *ring);
    CHECK(shown.table.slots == 3);
    CHECK(shown.table.driver_version == 12080);
    CHECK(shown.tensors[0].on_device == 1);
    CHECK(shown.tensors[1].on_device == 0);
    CHECK(shown.tensors[2].ndim == 1);
    CHECK(shown.tensors[2].row_bytes == 8);
    for (uint32_t slot = 0; slot < 3; ++slot) {
      CHECK(std::memcmp(shown.At(slot, 0), host.options.slots[slot][0], 90) == 0);
      CHECK(std::memcmp(shown.At(slot, 2), host.options.slots[slot][2], 16) == 0);
    }
  }
  CHECK(fake["allocated"] == 0);
  CHECK(fake["registered"] == 0);
  CHECK(fake["contexts"] == contexts);
}

TEST_CASE("an expanded tensor lies beside the others, with its own type and shape") {
  Fake fake;
  HostSlots host(2);
  cuda::Expansion expansion;
  expansion.dtype = ring::TensorDType::kFloat32;
  expansion.scale = {127.5};
  expansion.mean = {1};
  expansion.channels_first = true;
  REQUIRE(cuda::Plan(ring::TensorDType::kUint8, {2, 3, 5, 3}, &expansion).ok());
  host.options.expansions[0] = expansion;
  const auto ring = Make(host.options);
  REQUIRE(ring->Copy(1).ok());
  CHECK(fake["launches"] == 1);
  const Shown shown(fake, *ring);
  const ring::DeviceTensor& tensor = shown.tensors[0];
  CHECK(tensor.dtype == static_cast<uint8_t>(ring::TensorDType::kFloat32));
  CHECK(tensor.bytes == 360);
  CHECK(tensor.row_bytes == 180);
  CHECK(std::vector<int64_t>(tensor.shape, tensor.shape + tensor.ndim) ==
        std::vector<int64_t>{2, 3, 3, 5});
  const uint8_t* from = host.options.slots[1][0];
  for (int row = 0; row < 2; ++row) {
    for (int pixel = 0; pixel < 15; ++pixel) {
      for (int channel = 0; channel < 3; ++channel) {
        float found;
        std::memcpy(&found, shown.At(1, 0) + 4 * (row * 45 + channel * 15 + pixel), 4);
        CHECK(found == static_cast<float>(from[row * 45 + pixel * 3 + channel]) / 127.5f - 1);
      }
    }
  }
  // What was not expanded is where it was.
  CHECK(std::memcmp(shown.At(1, 2), host.options.slots[1][2], 16) == 0);
}

TEST_CASE("a ring larger than the device is refused with both figures") {
  Fake fake;
  HostSlots host(4);
  std::unique_ptr<DeviceRing> ring;
  fake.Set("memory", 1000);
  const Status status = DeviceRing::Create(host.options, &ring);
  CHECK(status.code == Code::kResourceExhausted);
  INFO(status.message);
  CHECK(status.message.find("4 slots need 1024 bytes, and 1000 of 1000 are free") !=
        std::string::npos);
  CHECK(fake["allocated"] == 0);
}

TEST_CASE("a device ring that cannot be made says why and leaves nothing") {
  Fake fake;
  HostSlots host(2);
  Code code = Code::kFailedPrecondition;
  std::string words;
  SECTION("no driver") {
    host.options.library = "/no/libcuda.so.1";
    words = "no CUDA driver";
  }
  SECTION("no device") {
    fake.Set("init", cuda::kErrorNoDevice);
    words = "no CUDA device";
  }
  SECTION("no such device") {
    host.options.device = 3;
    code = Code::kNotFound;
    words = "no such CUDA device: 3; there are 1";
  }
  SECTION("no events for other processes") {
    fake.Set("ipc_events", 0);
    words = "cannot share events of the device";
  }
  SECTION("no kernels") {
    cuda::Expansion expansion;
    REQUIRE(cuda::Plan(ring::TensorDType::kUint8, {2, 3, 5, 3}, &expansion).ok());
    host.options.expansions[0] = expansion;
    host.options.kernels = {};
    code = Code::kUnimplemented;
    words = "built without nvcc";
  }
  SECTION("no memory for the table of an expansion") {
    cuda::Expansion expansion;
    REQUIRE(cuda::Plan(ring::TensorDType::kUint8, {2, 3, 5, 3}, &expansion).ok());
    host.options.expansions[0] = expansion;
    // Nothing is left beside the ring.
    fake.Set("memory", 2 << 20);
    code = Code::kResourceExhausted;
    words = "no memory for the table of an expansion";
  }
  SECTION("nothing of fixed size") {
    host.options.tensors = {host.options.tensors[1]};
    for (auto& slot : host.options.slots) slot = {nullptr};
    code = Code::kInvalidArgument;
    words = "no tensor is of fixed size";
  }
  std::unique_ptr<DeviceRing> ring;
  const Status status = DeviceRing::Create(host.options, &ring);
  INFO(status.message);
  CHECK(status.code == code);
  CHECK(status.message.find(words) != std::string::npos);
  CHECK(ring == nullptr);
  CHECK(fake["allocated"] == 0);
  CHECK(fake["registered"] == 0);
}

TEST_CASE("without pinned slots copies go on, and it says why") {
  Fake fake;
  fake.Set("register", 801);
  HostSlots host(2);
  const auto ring = Make(host.options);
  CHECK(ring->not_pinned().find("memory cannot be registered") != std::string::npos);
  REQUIRE(ring->Copy(0).ok());
  const Shown shown(fake, *ring);
  CHECK(std::memcmp(shown.At(0, 0), host.options.slots[0][0], 90) == 0);
}

// A ring of two slots, which remembers what it was told.
class Remembering : public BatchSink {
 public:
  bool TryClaim(ClaimedSlot* slot) override {
    slot->slot = next_++ % 2;
    return true;
  }
  void Publish(const ClaimedSlot&, const StepInfo& info) override {
    CHECK(!end);
    published.push_back(info.step);
  }
  void Finish(const absl::Status& status) override {
    CHECK(!end);
    end = status;
  }
  void WaitForSlot(absl::Duration) override { ++waits; }
  void Interrupt() override {}

  std::vector<uint64_t> published;
  std::optional<absl::Status> end;
  int waits = 0;

 private:
  int next_ = 0;
};

struct Sink {
  explicit Sink(const HostSlots& host)
      : sink(
            ring, Make(host.options), [this] { return now_ns; }, absl::Seconds(30)) {}

  void Publish(uint64_t step) {
    ClaimedSlot slot;
    REQUIRE(sink.TryClaim(&slot));
    StepInfo info;
    info.step = step;
    sink.Publish(slot, info);
  }

  uint64_t now_ns = 1;
  Remembering ring;
  DeviceRingSink sink;
};

TEST_CASE("a slot is not filled again while the device reads it") {
  Fake fake;
  HostSlots host(2);
  Sink tested(host);
  tested.Publish(0);
  tested.Publish(1);
  fake.Set("hold", 1);
  tested.Publish(2);
  tested.Publish(3);
  CHECK(tested.ring.published == std::vector<uint64_t>{0, 1, 2, 3});
  ClaimedSlot slot;
  CHECK_FALSE(tested.sink.TryClaim(&slot));
  CHECK_FALSE(tested.sink.TryClaim(&slot));
  // It sleeps by itself: no release will wake it.
  tested.sink.WaitForSlot(absl::Milliseconds(100));
  CHECK(tested.ring.waits == 0);
  fake.Set("hold", 0);
  REQUIRE(tested.sink.TryClaim(&slot));
  // The one that was claimed first, and none was left out.
  CHECK(slot.slot == 0);
  tested.sink.WaitForSlot(absl::Milliseconds(100));
  CHECK(tested.ring.waits == 1);
}

TEST_CASE("a copy that never ends ends the stream instead") {
  Fake fake;
  HostSlots host(2);
  Sink tested(host);
  tested.Publish(0);
  tested.Publish(1);
  fake.Set("never", 1);
  ClaimedSlot slot;
  CHECK_FALSE(tested.sink.TryClaim(&slot));
  CHECK(!tested.ring.end);
  tested.now_ns += 30'000'000'000;
  CHECK_FALSE(tested.sink.TryClaim(&slot));
  REQUIRE(tested.ring.end);
  CHECK(tested.ring.end->ToString() == "INTERNAL: the device did not end a copy within 30 seconds");
  CHECK_FALSE(tested.sink.TryClaim(&slot));
  // Whatever the producer says then.
  tested.sink.Finish(absl::OkStatus());
}

TEST_CASE("fault 65: a device that is lost ends the stream, and nothing is published any more") {
  Fake fake;
  HostSlots host(2);
  Sink tested(host);
  tested.Publish(0);
  ClaimedSlot slot;
  REQUIRE(tested.sink.TryClaim(&slot));
  fake.Set("lost_after", 1);
  StepInfo info;
  info.step = 1;
  tested.sink.Publish(slot, info);
  REQUIRE(tested.ring.end);
  CHECK(tested.ring.end->code() == absl::StatusCode::kInternal);
  CHECK(std::string(tested.ring.end->message()).find("CUDA_ERROR_ECC_UNCORRECTABLE") !=
        std::string::npos);
  CHECK(tested.ring.published == std::vector<uint64_t>{0});
  CHECK_FALSE(tested.sink.TryClaim(&slot));
}

}  // namespace
}  // namespace penstock
