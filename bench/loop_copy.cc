// The bare copy that a cache of ready elements comes down to: elements at random places of memory,
// copied side by side into batches.
//
//   bench_loop_copy --elements N --bytes B --batch ROWS [--seconds S] [--threads N]
//
// Each thread fills batches of its own, in three slots by turns. Prints the line of loop_measure.h.
#include <algorithm>
#include <numeric>
#include <random>

#include "bench/loop_measure.h"

namespace penstock::bench {
namespace {

constexpr int kSlots = 3;

struct CopyFlags {
  uint64_t elements = 0;
  uint64_t bytes = 0;
  uint64_t batch = 0;
};

// Takes out what only this loop knows.
CopyFlags TakeFlags(int* argc, char** argv) {
  CopyFlags flags;
  int kept = 1;
  for (int i = 1; i + 1 < *argc; i += 2) {
    const std::string name = argv[i];
    uint64_t* const value = name == "--elements" ? &flags.elements
                            : name == "--bytes"  ? &flags.bytes
                            : name == "--batch"  ? &flags.batch
                                                 : nullptr;
    if (value != nullptr) {
      *value = std::strtoull(argv[i + 1], nullptr, 10);
      continue;
    }
    argv[kept++] = argv[i];
    argv[kept++] = argv[i + 1];
  }
  *argc = kept;
  if (flags.elements == 0 || flags.bytes == 0 || flags.batch == 0 || flags.elements < flags.batch)
    Die("what is to be copied?", "--elements N --bytes B --batch ROWS");
  return flags;
}

void Run(const LoopFlags& flags, const CopyFlags& copy) {
  const uint8_t* const elements = AllocateRing(copy.elements * copy.bytes);
  const uint64_t slot_bytes = copy.batch * copy.bytes;
  uint8_t* const slots = AllocateRing(kSlots * flags.threads * slot_bytes);
  Measure(flags, [&](int thread, LoopCounter& counter, const std::atomic<bool>& stop) {
    std::mt19937_64 dice(thread);
    std::vector<uint64_t> order(copy.elements);
    std::iota(order.begin(), order.end(), uint64_t{0});
    uint64_t next = order.size();
    for (uint64_t batch = 0; !stop.load(std::memory_order_relaxed); ++batch) {
      uint8_t* const slot = slots + (thread * kSlots + batch % kSlots) * slot_bytes;
      for (uint64_t row = 0; row < copy.batch; ++row, ++next) {
        if (next >= order.size()) {
          std::shuffle(order.begin(), order.end(), dice);
          next = 0;
        }
        std::memcpy(slot + row * copy.bytes, elements + order[next] * copy.bytes, copy.bytes);
      }
      counter.Add(copy.batch);
    }
  });
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  const penstock::bench::CopyFlags copy = penstock::bench::TakeFlags(&argc, argv);
  std::vector<char*> words(argv, argv + argc);
  char files[] = "--files", memory[] = "memory";
  words.insert(words.end(), {files, memory});
  penstock::bench::Run(penstock::bench::ParseFlags(static_cast<int>(words.size()), words.data(),
                                                   /*has_dtype=*/false),
                       copy);
}
