// C++ consumers of a running daemon, as the cases of `./dev bench ring` need them:
//
//   ring_take SOCKET PIPELINE CONSUMERS
//
// Attaches that many consumers of a broadcast, each in a thread of its own that reads the ends of
// every batch. Prints as JSON how long the first one's attaching took, up to its first batch; then,
// for each line of its standard input, how many batches the slowest has taken so far.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "ring/attach.h"
#include "ring/futex.h"
#include "ring/reader.h"

using penstock::ring::Attachment;
using penstock::ring::Lease;
using penstock::ring::MonotonicNs;
using penstock::ring::Reader;

namespace {

constexpr uint64_t kFirstNs = 10'000'000'000;
constexpr uint64_t kLookNs = 200'000'000;

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "ring_take: %s\n", message.c_str());
  std::exit(1);
}

std::unique_ptr<Reader> Attach(const std::string& socket, const std::string& pipeline) {
  penstock::ring::ConsumerSpec spec;
  spec.group = "default";
  Attachment attachment;
  if (auto status = penstock::ring::Attach(
          socket, penstock::ring::EncodeRequest(pipeline, spec, {}), 10'000'000'000, &attachment);
      !status.ok()) {
    Die(status.message);
  }
  std::unique_ptr<Reader> reader;
  if (auto status = Reader::Open(attachment, &reader); !status.ok()) Die(status.message);
  return reader;
}

// False when there was none in that time.
bool TakeOne(Reader* reader, uint64_t timeout_ns) {
  Lease lease;
  const Reader::Result result = reader->Next(timeout_ns, &lease);
  if (result == Reader::Result::kTimeout) return false;
  if (result != Reader::Result::kBatch) Die(reader->error().message);
  for (const penstock::ring::TensorEntry& entry : reader->tensors()) {
    const volatile uint8_t* data = lease.data + entry.offset;
    if (entry.capacity_bytes > 0) (void)(data[0] + data[entry.capacity_bytes - 1]);
  }
  reader->Release(lease);
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: ring_take SOCKET PIPELINE CONSUMERS\n");
    return 2;
  }
  const std::string socket = argv[1], pipeline = argv[2];
  const int consumers = std::max(std::atoi(argv[3]), 1);

  const uint64_t begin_ns = MonotonicNs();
  std::vector<std::unique_ptr<Reader>> readers;
  readers.push_back(Attach(socket, pipeline));
  if (!TakeOne(readers[0].get(), kFirstNs)) Die("no batch came");
  std::printf("{\"first_batch_ms\": %.3f}\n", static_cast<double>(MonotonicNs() - begin_ns) * 1e-6);
  std::fflush(stdout);
  for (int i = 1; i < consumers; ++i) readers.push_back(Attach(socket, pipeline));

  std::atomic<int> attached{0};
  std::vector<std::atomic<uint64_t>> taken(readers.size());
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (size_t i = 0; i < readers.size(); ++i) {
    threads.emplace_back([&, i] {
      if (!TakeOne(readers[i].get(), kFirstNs)) Die("no batch came");
      ++attached;
      while (!stop.load(std::memory_order_relaxed)) {
        // A pipeline may be paused for as long as it likes.
        if (TakeOne(readers[i].get(), kLookNs)) taken[i].fetch_add(1, std::memory_order_relaxed);
      }
      readers[i]->Leave();
    });
  }
  const auto slowest = [&] {
    uint64_t least = UINT64_MAX;
    for (const auto& count : taken) least = std::min(least, count.load());
    return least;
  };
  while (attached.load() < consumers) std::this_thread::yield();
  char line[16];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::printf("{\"taken\": %llu}\n", static_cast<unsigned long long>(slowest()));
    std::fflush(stdout);
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}
