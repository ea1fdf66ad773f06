// What a hand-over costs between two threads over two maps of one ring, printed as lines of JSON:
//
//   ring_wake [ROUNDS]
//
//   handover_spin  ns from before Publish() until a consumer that spins has the batch
//   wake           ns until a consumer that sleeps has it, beside a bare FUTEX_WAKE of a thread
//                  that waits; by turns
//   futex_calls    system calls on the ring's futex for ROUNDS × 100 batches that nobody waited for
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "ring/futex.h"
#include "ring/layout.h"
#include "ring/reader.h"
#include "ring/writer.h"

namespace {

using penstock::ring::ConsumerHandle;
using penstock::ring::FutexWait;
using penstock::ring::FutexWake;
using penstock::ring::Lease;
using penstock::ring::MonotonicNs;
using penstock::ring::Reader;
using penstock::ring::WaitTimes;
using penstock::ring::Writer;

[[noreturn]] void Die(const char* what) {
  std::fprintf(stderr, "ring_wake: %s\n", what);
  std::exit(1);
}

uint64_t Percentile(std::vector<uint64_t> values, double part) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(part * static_cast<double>(values.size() - 1))];
}

// A ring with one consumer, both sides in this process.
struct Pair {
  explicit Pair(const WaitTimes& times) {
    penstock::ring::SegmentOptions options;
    options.pipeline = "wake";
    options.slots = 3;
    options.tensors = {
        {"x", static_cast<uint8_t>(penstock::ring::TensorDType::kInt64), true, {512}}};
    if (!Writer::Create(options, &writer).ok()) Die("no ring");
    ConsumerHandle handle;
    if (!writer->Attach("default", 1, &handle).ok()) Die("no consumer");
    penstock::ring::Attachment attachment;
    attachment.segment_fd = dup(handle.segment_fd);
    attachment.control_fd = dup(handle.control_fd);
    attachment.bell_fd = dup(handle.bell_fd);
    attachment.socket = dup(handle.bell_fd);
    attachment.consumer = handle.id;
    if (!Reader::Open(attachment, &reader, times).ok()) Die("no reader");
  }

  // Publishes the next step with the time in it.
  void Publish() {
    int slot;
    while ((slot = writer->TryClaim()) < 0) penstock::ring::SpinPause();
    const uint64_t now_ns = MonotonicNs();
    std::memcpy(writer->tensor(slot, 0), &now_ns, sizeof now_ns);
    writer->Publish(slot, {step++, 0, 512, {}});
  }

  // The nanoseconds from the publishing of the next step until here.
  uint64_t Take() {
    Lease lease;
    if (reader->Next(UINT64_MAX, &lease) != Reader::Result::kBatch) Die("the stream ended");
    const uint64_t now_ns = MonotonicNs();
    uint64_t then_ns;
    std::memcpy(&then_ns, lease.data + reader->tensors()[0].offset, sizeof then_ns);
    reader->Release(lease);
    return now_ns - then_ns;
  }

  std::unique_ptr<Writer> writer;
  std::unique_ptr<Reader> reader;
  uint64_t step = 0;
};

void SpinFor(uint64_t ns) {
  const uint64_t end_ns = MonotonicNs() + ns;
  while (MonotonicNs() < end_ns) penstock::ring::SpinPause();
}

void HandoverSpin(int rounds) {
  WaitTimes times;
  times.spin_ns = UINT64_MAX / 4;
  Pair pair(times);
  std::vector<uint64_t> taken;
  std::thread consumer([&] {
    for (int i = 0; i < rounds * 100; ++i) taken.push_back(pair.Take());
  });
  for (int i = 0; i < rounds * 100; ++i) {
    pair.Publish();
    SpinFor(3'000);
  }
  consumer.join();
  std::printf(
      "{\"case\": \"handover_spin\", \"p50_ns\": %llu, \"p90_ns\": %llu, \"p99_ns\": %llu}\n",
      static_cast<unsigned long long>(Percentile(taken, 0.5)),
      static_cast<unsigned long long>(Percentile(taken, 0.9)),
      static_cast<unsigned long long>(Percentile(taken, 0.99)));
}

// A word in memory that processes could share, and when it was written.
struct Bare {
  std::atomic<uint32_t> word{0};
  std::atomic<uint64_t> written_ns{0};
};

void Wake(int rounds) {
  Pair pair({});
  void* memory = mmap(nullptr, penstock::ring::kPageBytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) Die("no memory");
  Bare* bare = new (memory) Bare;
  std::vector<uint64_t> ours, theirs;
  std::thread consumer([&] {
    for (int i = 0; i < rounds; ++i) {
      ours.push_back(pair.Take());
      while (bare->word.load() == static_cast<uint32_t>(i)) {
        FutexWait(bare->word, static_cast<uint32_t>(i), UINT32_MAX, UINT64_MAX / 2);
      }
      theirs.push_back(MonotonicNs() - bare->written_ns.load());
    }
  });
  for (int i = 0; i < rounds; ++i) {
    // Both sleep for equally long, beyond the time for which a reader asks for two batches.
    usleep(3'000);
    pair.Publish();
    usleep(3'000);
    bare->written_ns.store(MonotonicNs());
    bare->word.store(static_cast<uint32_t>(i) + 1);
    FutexWake(bare->word, UINT32_MAX);
  }
  consumer.join();
  const double ours_ns = static_cast<double>(Percentile(ours, 0.5));
  const double theirs_ns = static_cast<double>(Percentile(theirs, 0.5));
  std::printf(
      "{\"case\": \"wake\", \"peer\": \"bare futex\", \"ours_ns\": %.0f, \"theirs_ns\": %.0f, "
      "\"ratio\": %.3f}\n",
      ours_ns, theirs_ns, ours_ns / theirs_ns);
}

void FutexCalls(int rounds) {
  Pair pair({});
  const uint64_t before = penstock::ring::num_futex_calls.load();
  for (int i = 0; i < rounds * 100; ++i) {
    pair.Publish();
    pair.Take();
  }
  std::printf("{\"case\": \"futex_calls\", \"batches\": %d, \"calls\": %llu}\n", rounds * 100,
              static_cast<unsigned long long>(penstock::ring::num_futex_calls.load() - before));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 300;
  HandoverSpin(rounds);
  Wake(rounds);
  FutexCalls(rounds);
  return 0;
}
