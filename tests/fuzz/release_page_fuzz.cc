// Looks for words in a consumer's control page with which the daemon crashes, or changes what
// another consumer sees: fault 43.
//
// The first byte says what kind of consumer is hostile; then come acts of three bytes each: a word
// of its page and a value, or a part of the daemon's or of the honest consumer's work.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "ring/reader.h"
#include "ring/writer.h"

using namespace penstock::ring;

namespace {

constexpr int kWords = 16;

void Require(bool fine) {
  if (!fine) std::abort();
}

std::unique_ptr<Writer> MakeWriter() {
  SegmentOptions options;
  options.pipeline = "fuzz";
  options.slots = 3;
  options.tensors = {{"x", static_cast<uint8_t>(TensorDType::kUint64), true, {kWords}}};
  std::unique_ptr<Writer> writer;
  Require(Writer::Create(options, &writer).ok());
  return writer;
}

struct Honest {
  explicit Honest(Writer* writer) {
    ConsumerHandle handle;
    ConsumerSpec spec;
    spec.group = "honest";
    spec.lag_ms = UINT32_MAX;  // whoever claims to wait for it shall not have it sent away
    Require(writer->Attach(spec, {}, 1, &handle).ok());
    Attachment attachment;
    attachment.socket = dup(handle.bell_fd);
    attachment.segment_fd = dup(handle.segment_fd);
    attachment.control_fd = dup(handle.control_fd);
    attachment.bell_fd = dup(handle.bell_fd);
    attachment.consumer = handle.id;
    Require(Reader::Open(attachment, &reader).ok());
    next = handle.start_step;
  }
  void Take() {
    Lease lease;
    if (!reader->Ready()) return;
    Require(reader->Next(0, &lease) == Reader::Result::kBatch && lease.step == next++);
    held.push_back(lease);
    Check();
  }
  void Check() const {
    for (const Lease& lease : held) {
      const auto* words =
          reinterpret_cast<const uint64_t*>(lease.data + reader->tensors()[0].offset);
      for (int i = 0; i < kWords; ++i) Require(words[i] == lease.step);
    }
  }
  void Release() {
    if (held.empty()) return;
    reader->Release(held.front());
    held.erase(held.begin());
  }
  std::unique_ptr<Reader> reader;
  std::vector<Lease> held;
  uint64_t next = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 1) return 0;
  auto writer = MakeWriter();
  Honest honest(writer.get());
  ConsumerSpec spec;
  spec.group = "hostile";
  spec.mode = data[0] % 3 == 0   ? GroupMode::kBroadcast
              : data[0] % 3 == 1 ? GroupMode::kRank
                                 : GroupMode::kSplit;
  if (spec.mode == GroupMode::kRank) spec.world_size = 2;
  spec.slow = static_cast<SlowPolicy>(data[0] / 4 % 3);
  ConsumerHandle handle;
  if (!writer->Attach(spec, {}, 2, &handle).ok()) return 0;
  void* memory =
      mmap(nullptr, sizeof(ControlPage), PROT_READ | PROT_WRITE, MAP_SHARED, handle.control_fd, 0);
  Require(memory != MAP_FAILED);
  auto* words = static_cast<std::atomic<uint64_t>*>(memory);
  uint64_t now_ns = 1;
  for (size_t i = 1; i + 2 < size; i += 3) {
    const uint64_t value = data[i + 2];
    if (data[i] < 128) {
      const uint64_t published = writer->published();
      const uint64_t values[] = {value, published + value % 8, published - value % 8, ~value,
                                 value << 56};
      words[data[i + 1] * 4 % 512 + data[i] % 4].store(values[data[i] / 4 % 5]);
      continue;
    }
    switch (data[i] % 8) {
      case 0:
      case 1:
      case 2: {
        const int slot = writer->TryClaim();
        if (slot < 0) break;
        auto* x = reinterpret_cast<uint64_t*>(writer->tensor(slot, 0));
        for (int word = 0; word < kWords; ++word) x[word] = writer->published();
        writer->Publish(slot, {writer->published(), 0, kWords, {}});
        break;
      }
      case 3:
        honest.Take();
        break;
      case 4:
        honest.Release();
        break;
      case 5:
        writer->Deal();
        break;
      case 6:
        now_ns += value << 28;
        writer->Tick(now_ns, 1'000'000'000);
        break;
      case 7:
        writer->Consumers();
        writer->floor();
        break;
    }
    honest.Check();
  }
  writer->Detach(handle.id);
  munmap(memory, sizeof(ControlPage));
  // It has gone, and once nobody waits any more for its group everything is as if it had not been
  // there: the ring takes a new step as soon as the honest one lets go.
  for (int look = 0; look < 3; ++look) writer->Tick(now_ns += 2'000'000'000, 1'000'000'000);
  while (!honest.held.empty()) honest.Release();
  for (int step = 0; step < 4; ++step) {
    while (honest.reader->Ready()) {
      honest.Take();
      honest.Release();
    }
    const int slot = writer->TryClaim();
    Require(slot >= 0);
    auto* x = reinterpret_cast<uint64_t*>(writer->tensor(slot, 0));
    for (int word = 0; word < kWords; ++word) x[word] = writer->published();
    writer->Publish(slot, {writer->published(), 0, kWords, {}});
  }
  return 0;
}
