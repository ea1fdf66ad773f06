// The strictest bare loop for reading and parsing: mapped files, both checksums, Examples parsed by
// hand, `d` and `s` copied into batches of 512 in a private ring, and no hand-over. What the
// engine's reading is compared with.
//
//   bench_loop_parse --files GLOB [--shuffle N] [--seconds S] [--threads N]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/loop_chess_record.h"
#include "bench/loop_measure.h"
#include "bench/loop_records.h"

namespace penstock::bench {
namespace {

#define PENSTOCK_PARSE_AVX512                                                   \
  __attribute__((                                                               \
      target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq," \
             "pclmul")))
#define PENSTOCK_PARSE_AVX2 __attribute__((target("avx2,fma,bmi,bmi2,pclmul")))

constexpr int kBatch = 512;
constexpr int kSlots = 2;
constexpr size_t kSlotBytes = size_t{kBatch} * (kPlaneBytes + sizeof(int64_t)) + 64;

struct Avx512 {
  PENSTOCK_PARSE_AVX512 static Position Next(RecordWalk& walk) {
    return ParsePosition(walk.Next<Crc32cOfRecordAvx512>());
  }
};

struct Avx2 {
  PENSTOCK_PARSE_AVX2 static Position Next(RecordWalk& walk) {
    return ParsePosition(walk.Next<Crc32cOfRecord>());
  }
};

// Rows drawn ahead of their copying, so that their bytes are on their way.
constexpr int kDistance = 16;

template <typename Isa>
__attribute__((always_inline)) inline void Work(const std::vector<MappedFile>& files, size_t thread,
                                                const LoopFlags& flags, int shuffle,
                                                LoopCounter& counter,
                                                const std::atomic<bool>& stop) {
  RecordWalk walk(files, thread, flags.threads);
  uint8_t* const ring = AllocateRing(kSlots * kSlotBytes);
  Dice dice{thread};
  std::vector<Position> buffer(shuffle);
  for (Position& position : buffer) position = Isa::Next(walk);
  for (uint64_t step = 0; !stop.load(std::memory_order_relaxed); ++step) {
    uint8_t* const planes = ring + step % kSlots * kSlotBytes;
    uint8_t* const scores = planes + size_t{kBatch} * kPlaneBytes;
    const auto put = [&](int row, const Position& position) __attribute__((always_inline)) {
      std::memcpy(planes + size_t{kPlaneBytes} * row, position.planes, kPlaneBytes);
      std::memcpy(scores + sizeof(int64_t) * row, &position.score, sizeof(int64_t));
    };
    if (shuffle == 0) {
      for (int row = 0; row < kBatch; ++row) put(row, Isa::Next(walk));
    } else {
      Position drawn[kDistance];
      for (int row = 0; row < kBatch; row += kDistance) {
        for (Position& position : drawn) {
          Position& cell = buffer[dice.Below(shuffle)];
          position = cell;
          for (int line = 0; line < 4; ++line) {
            _mm_prefetch(reinterpret_cast<const char*>(position.planes + 64 * line), _MM_HINT_T0);
          }
          cell = Isa::Next(walk);
        }
        for (int i = 0; i < kDistance; ++i) put(row + i, drawn[i]);
      }
    }
    counter.Add(kBatch);
  }
}

PENSTOCK_PARSE_AVX512 void WorkAvx512(const std::vector<MappedFile>& files, size_t thread,
                                      const LoopFlags& flags, int shuffle, LoopCounter& counter,
                                      const std::atomic<bool>& stop) {
  Work<Avx512>(files, thread, flags, shuffle, counter, stop);
}

PENSTOCK_PARSE_AVX2 void WorkAvx2(const std::vector<MappedFile>& files, size_t thread,
                                  const LoopFlags& flags, int shuffle, LoopCounter& counter,
                                  const std::atomic<bool>& stop) {
  Work<Avx2>(files, thread, flags, shuffle, counter, stop);
}

// Takes `--shuffle N` out of the arguments. 0: in order.
int TakeShuffle(int* argc, char** argv) {
  for (int i = 1; i + 1 < *argc; i += 2) {
    if (std::string(argv[i]) != "--shuffle") continue;
    const int shuffle = std::atoi(argv[i + 1]);
    if (shuffle < 0) Die("--shuffle", argv[i + 1]);
    std::copy(argv + i + 2, argv + *argc, argv + i);
    *argc -= 2;
    return shuffle;
  }
  return 0;
}

void Run(const LoopFlags& flags, int shuffle) {
  std::vector<MappedFile> files;
  for (const std::string& path : MatchFiles(flags.files)) files.emplace_back(path);
  if (files.size() < static_cast<size_t>(flags.threads))
    Die("fewer files than threads", flags.files);
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("vpclmulqdq");
  if (!has_avx512 && !__builtin_cpu_supports("avx2"))
    Die("no AVX2", "this machine is too old for the loop");
  Measure(flags, [&](int thread, LoopCounter& counter, const std::atomic<bool>& stop) {
    (has_avx512 ? WorkAvx512 : WorkAvx2)(files, thread, flags, shuffle, counter, stop);
  });
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  const int shuffle = penstock::bench::TakeShuffle(&argc, argv);
  penstock::bench::Run(penstock::bench::ParseFlags(argc, argv, /*has_dtype=*/false), shuffle);
}
