// Registration, shared memory and kernels on a real device, in one process.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>

#include "cuda/event.h"
#include "cuda/expansion.h"
#include "cuda/pinned_range.h"
#include "cuda/shared_memory.h"
#include "ring/descriptor.h"
#include "ring/segment_plan.h"
#include "tests/cuda/device/real_device.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

namespace penstock::cuda {
namespace {

using ring::Status;
using ring::TensorDType;

// A file of memory as a ring is: sealed, mapped to be written by one and to be read by another.
struct RingFile {
  explicit RingFile(uint64_t bytes, bool huge) : bytes(bytes) {
    file = ring::Descriptor(memfd_create("device-test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    REQUIRE(ftruncate(file.get(), static_cast<off_t>(bytes)) == 0);
    written = static_cast<uint8_t*>(
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0));
    REQUIRE(written != MAP_FAILED);
    REQUIRE(fcntl(file.get(), F_ADD_SEALS,
                  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) == 0);
    if (huge) {
      for (uint64_t page = 0; page < bytes; page += 2 << 20) written[page] = 0;
      collapsed = madvise(written, bytes, MADV_COLLAPSE) == 0;
    }
    read = static_cast<uint8_t*>(mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file.get(), 0));
    REQUIRE(read != MAP_FAILED);
  }
  ~RingFile() {
    munmap(read, bytes);
    munmap(written, bytes);
  }

  const uint64_t bytes;
  ring::Descriptor file;
  uint8_t* written = nullptr;
  uint8_t* read = nullptr;
  bool collapsed = false;
};

TEST_CASE("slots of a sealed ring are registered by who reads and by who writes them") {
  const auto device = Open();
  const bool huge = GENERATE(false, true);
  constexpr uint64_t kSlot = 4 << 20;
  RingFile file(4 * kSlot, huge);
  if (huge) WARN("huge pages: " << file.collapsed);
  const bool written_before = GENERATE(false, true);
  const std::vector<uint8_t> first = Pattern(kSlot, 1);
  if (written_before) std::memcpy(file.written + kSlot, first.data(), kSlot);
  std::unique_ptr<PinnedRange> reader, writer, next;
  Status status = PinnedRange::Register(device, file.read + kSlot, kSlot, true, &reader);
  INFO("read-only: " << status.message);
  CHECK(status.ok());
  status = PinnedRange::Register(device, file.written + kSlot, kSlot, false, &writer);
  INFO("writable: " << status.message);
  CHECK(status.ok());
  status = PinnedRange::Register(device, file.read + 2 * kSlot, kSlot, true, &next);
  INFO("the slot behind it: " << status.message);
  CHECK(status.ok());
  if (!written_before) std::memcpy(file.written + kSlot, first.data(), kSlot);
  const Memory memory(device, kSlot);
  Write(*device, memory.address(), file.read + kSlot, kSlot);
  CHECK((Read(*device, memory.address(), kSlot) == first));
  // What is written later is what is copied later.
  const std::vector<uint8_t> second = Pattern(kSlot, 2);
  std::memcpy(file.written + kSlot, second.data(), kSlot);
  Write(*device, memory.address(), file.read + kSlot, kSlot);
  CHECK((Read(*device, memory.address(), kSlot) == second));
  Write(*device, memory.address(), file.written + kSlot + 64, kSlot - 128);
  const std::vector<uint8_t> middle(second.begin() + 64, second.end() - 64);
  CHECK((Read(*device, memory.address(), kSlot - 128) == middle));
  // Again, as a trainer that attaches a second time does.
  reader.reset();
  CHECK(PinnedRange::Register(device, file.read + kSlot, kSlot, true, &reader).ok());
}

TEST_CASE("a read-only map is not registered without the flag") {
  const auto device = Open();
  RingFile file(1 << 20, false);
  std::unique_ptr<PinnedRange> range;
  const Status status = PinnedRange::Register(device, file.read, file.bytes, false, &range);
  WARN("without the flag: " << (status.ok() ? "registered" : status.message));
}

TEST_CASE("an event is over when the work in front of it is") {
  const auto device = Open();
  StreamHandle stream = nullptr;
  const Entered entered(*device);
  MUST(device, StreamCreate(&stream, kStreamNonBlocking), "a stream");
  std::unique_ptr<Event> event;
  REQUIRE(Event::Create(device, kEventInterprocess, &event).ok());
  Status error;
  CHECK(event->Look(&error) == Event::State::kOver);  // never recorded
  const Memory memory(device, 512 << 20);
  for (int i = 0; i < 20; ++i) {
    MUST(device,
         MemcpyDtoDAsync(memory.address(), memory.address() + (256 << 20), 256 << 20, stream),
         "a copy");
  }
  REQUIRE(event->Record(stream).ok());
  WARN("right behind its recording: " << (event->Look(&error) == Event::State::kWaits ? "waits"
                                                                                      : "over"));
  MUST(device, StreamSynchronize(stream), "the copies");
  CHECK(event->Look(&error) == Event::State::kOver);
  IpcEvent handle;
  CHECK(event->Handle(&handle).message == "");
  event.reset();
  device->driver().StreamDestroy(stream);
}

TEST_CASE("memory by descriptor is mapped twice") {
  const auto device = Open();
  std::unique_ptr<SharedMemory> memory, again;
  Status status = SharedMemory::Create(device, (5 << 20) + 3, &memory);
  INFO(status.message);
  REQUIRE(status.ok());
  if (memory->descriptor() < 0) {
    WARN("this device shares memory by handles");
    return;
  }
  CHECK(memory->bytes() >= (5 << 20) + 3);
  CHECK(fcntl(memory->descriptor(), F_GETFD) == FD_CLOEXEC);
  status = SharedMemory::Open(device, memory->descriptor(), memory->bytes(), &again);
  INFO(status.message);
  REQUIRE(status.ok());
  CHECK(again->address() != memory->address());
  const std::vector<uint8_t> bytes = Pattern(5 << 20, 3);
  Write(*device, memory->address(), bytes.data(), bytes.size());
  CHECK((Read(*device, again->address(), bytes.size()) == bytes));
  // It outlives who made it.
  memory.reset();
  CHECK((Read(*device, again->address(), bytes.size()) == bytes));
}

TEST_CASE("more memory than the device has is refused") {
  const auto device = Open();
  std::unique_ptr<SharedMemory> memory;
  const Status status = SharedMemory::Create(device, uint64_t{1} << 44, &memory);
  INFO(status.message);
  CHECK(status.code == ring::Code::kResourceExhausted);
}

// ---- kernels ----

// The bytes that the kernels' bodies give on the host, by the driver of the tests.
std::vector<uint8_t> OnHost(const Expansion& expansion, TensorDType dtype,
                            const std::vector<int64_t>& shape, const std::vector<uint8_t>& from) {
  const auto device = Open(LibraryBeside("libfake_cuda.so"));
  const uint8_t image[] = {0};
  std::unique_ptr<Expander> expander;
  REQUIRE(Expander::Create(device, image, &expander).ok());
  std::unique_ptr<ReadyExpansion> ready;
  REQUIRE(expander->Prepare(expansion, dtype, shape, &ready).ok());
  std::vector<uint8_t> to(expansion.bytes);
  REQUIRE(ready
              ->Run(reinterpret_cast<Address>(from.data()), reinterpret_cast<Address>(to.data()),
                    nullptr)
              .ok());
  return to;
}

// And those of the device, `from` and `to` bytes behind what it aligns memory to.
void Compare(Expansion expansion, TensorDType dtype, const std::vector<int64_t>& shape,
             const std::vector<uint8_t>& bytes, uint64_t from = 0, uint64_t to = 0) {
  const Status planned = Plan(dtype, shape, &expansion);
  INFO(planned.message);
  REQUIRE(planned.ok());
  const auto device = Open();
  std::unique_ptr<Expander> expander;
  Status status = Expander::Create(device, Kernels(), &expander);
  INFO(status.message);
  REQUIRE(status.ok());
  const Memory in(device, bytes.size() + 256);
  const Memory out(device, expansion.bytes + 512);
  Write(*device, in.address() + from, bytes.data(), bytes.size());
  const std::vector<uint8_t> untouched(expansion.bytes + 512, 0xCD);
  Write(*device, out.address(), untouched.data(), untouched.size());
  std::unique_ptr<ReadyExpansion> ready;
  status = expander->Prepare(expansion, dtype, shape, &ready);
  INFO(status.message);
  REQUIRE(status.ok());
  status = ready->Run(in.address() + from, out.address() + to, nullptr);
  INFO(status.message);
  REQUIRE(status.ok());
  std::vector<uint8_t> found = Read(*device, out.address(), untouched.size());
  // Nothing beside it.
  CHECK(std::vector<uint8_t>(found.begin(), found.begin() + static_cast<ptrdiff_t>(to)) ==
        std::vector<uint8_t>(to, 0xCD));
  CHECK(found[to + expansion.bytes] == 0xCD);
  found.erase(found.begin(), found.begin() + static_cast<ptrdiff_t>(to));
  found.resize(expansion.bytes);
  const std::vector<uint8_t> want = OnHost(expansion, dtype, shape, bytes);
  // Not by CHECK of both, which would print them in full.
  size_t first = 0;
  while (first < want.size() && want[first] == found[first]) ++first;
  CHECK(first == want.size());
}

bool HasKernels() {
  if (!Kernels().empty()) return true;
  WARN("this program was built without nvcc: its kernels are not compared");
  return false;
}

TEST_CASE("normalize gives the host's bytes") {
  if (!HasKernels()) return;
  Expansion expansion;
  expansion.dtype = GENERATE(TensorDType::kFloat16, TensorDType::kBfloat16, TensorDType::kFloat32,
                             TensorDType::kFloat64);
  SECTION("a cast alone") {}
  SECTION("a scale and a mean") {
    expansion.scale = {127.5};
    expansion.mean = {1};
  }
  SECTION("numbers for each channel") {
    expansion.scale = {255};
    expansion.mean = {0.485, 0.456, 0.406};
    expansion.deviation = {0.229, 0.224, 0.225};
    expansion.channels_first = GENERATE(false, true);
  }
  std::vector<std::vector<int64_t>> shapes = {
      {3, 7, 15, 3}, {16, 224, 224, 3}, {3, 299, 299, 3}, {5000, 9, 3}, {70000, 40, 3}};
  SECTION("channels first alone") {
    expansion.channels_first = true;
    shapes.insert(shapes.end(),
                  {{400, 61, 13, 4}, {900, 24, 10, 4}, {5000, 1, 16}, {700, 13, 7, 5}});
  }
  for (const std::vector<int64_t>& shape : shapes) {
    uint64_t count = 1;
    for (const int64_t axis : shape) count *= static_cast<uint64_t>(axis);
    INFO("rows " << shape[0]);
    Compare(expansion, TensorDType::kUint8, shape, Pattern(count, 5));
    // As a rank's rows may lie.
    Compare(expansion, TensorDType::kUint8, shape, Pattern(count, 6), 1,
            ring::ElementBytes(static_cast<uint8_t>(expansion.dtype)));
  }
}

TEST_CASE("one_hot and unpack_bits give the host's bytes") {
  if (!HasKernels()) return;
  Expansion expansion;
  expansion.dtype = GENERATE(TensorDType::kUint8, TensorDType::kFloat16, TensorDType::kBfloat16,
                             TensorDType::kFloat32, TensorDType::kFloat64);
  SECTION("one_hot") {
    expansion.kind = Expansion::Kind::kOneHot;
    expansion.depth = GENERATE(1, 6, 203);
    const TensorDType from =
        GENERATE(TensorDType::kUint8, TensorDType::kInt32, TensorDType::kInt64);
    // More items than a grid has threads.
    constexpr int64_t kRows = 70'001;
    const uint64_t size = ring::ElementBytes(static_cast<uint8_t>(from));
    std::vector<uint8_t> indices(kRows * size);
    for (int64_t row = 0; row < kRows; ++row) {
      const int64_t index = row % (expansion.depth + 3) - 1;
      std::memcpy(indices.data() + row * size, &index, size);
    }
    Compare(expansion, from, {kRows}, indices);
  }
  SECTION("unpack_bits") {
    expansion.kind = Expansion::Kind::kUnpackBits;
    Compare(expansion, TensorDType::kUint8, {37, 11}, Pattern(37 * 11, 7));
    Compare(expansion, TensorDType::kUint8, {4096, 1000}, Pattern(4096 * 1000, 8), 3);
  }
}

}  // namespace
}  // namespace penstock::cuda
