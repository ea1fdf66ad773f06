// The strictest bare loop for the pipeline "chess": mapped files, a private shuffle and a private
// ring of two slots a thread, both checksums, the transform by hand, and no hand-over. What
// Penstock is compared with.
//
//   bench_loop_chess --files GLOB [--dtype float32|float64] [--seconds S] [--threads N]
//
// Prints {"examples_per_s": …, "cpu_s_per_million": …, "seconds": …}.
#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "bench/loop_chess_record.h"
#include "bench/loop_chess_transform.h"
#include "bench/loop_measure.h"
#include "bench/loop_records.h"

namespace penstock::bench {
namespace {

constexpr int kShuffle = 10000;
constexpr int kBatch = 512;
constexpr int kSlots = 2;
static_assert(kBatch % kBlockRows == 0);

// Compares the pieces of an instruction set with the definition, on one block: a loop that computes
// something else is no bound.
template <typename T, typename Isa>
void Check(const std::vector<MappedFile>& files) {
  RecordWalk walk(files, 0, 1);
  const ScoreConstants constants;
  alignas(64) T s[kBlockRows], m[kBlockRows], scores[kBlockRows], expected[kBlockRows];
  for (int i = 0; i < kBlockRows; ++i) {
    const Position row = Isa::Next(walk);
    const auto bit = [&](int index) { return row.planes[index / 8] >> (7 - index % 8) & 1; };
    std::vector<T> board(kBoard), flags(16);
    Isa::Planes(row.planes, board.data(), flags.data());
    for (int j = 0; j < kBoard; ++j) {
      const int plane = bit(j / 24 * 24 + kPlane[j % 24]);
      const T value = static_cast<T>(j % 24 / 6 % 2 == 0 ? plane : -plane);
      if (std::memcmp(&board[j], &value, sizeof(T)) != 0) Die("the transform is wrong", "board");
    }
    for (int j = 0; j < kFlags; ++j) {
      if (flags[j] != static_cast<T>(bit(kBoard + j))) Die("the transform is wrong", "flags");
    }
    const double v = static_cast<double>(row.score), mate = bit(kBoard + kFlags);
    const double sign = v > 0 ? 1 : v < 0 ? -1 : 0;
    s[i] = static_cast<T>(v);
    m[i] = static_cast<T>(mate);
    expected[i] = static_cast<T>((1 - mate) * constants.a * std::tanh(v / constants.k) +
                                 mate * sign *
                                     (constants.a + (1 - constants.a) / (constants.b - 1) *
                                                        std::max(0.0, constants.b - std::abs(v))));
  }
  Isa::Scores(s, m, constants, scores);
  for (int i = 0; i < kBlockRows; ++i) {
    if (!(std::abs(scores[i] - expected[i]) <= (sizeof(T) == 4 ? 2.5e-7 : 1e-15)))
      Die("the transform is wrong", "score");
  }
}

// How many rows lie between the draw of a record and its transform, so that it is in the cache
// again.
constexpr int kDistance = 16;

// One thread's work for ever; `Isa` brings the pieces that depend on the instruction set.
template <typename T, typename Isa>
__attribute__((always_inline)) inline void Work(const std::vector<MappedFile>& files, size_t thread,
                                                size_t threads, LoopCounter& counter,
                                                const std::atomic<bool>& stop) {
  constexpr size_t kSlotValues = size_t{kBatch} * (kBoard + kFlags + 1);
  T* const ring = reinterpret_cast<T*>(AllocateRing(kSlots * kSlotValues * sizeof(T) + 64));
  RecordWalk walk(files, thread, threads);
  Dice dice{thread + 1};
  std::vector<Position> buffer(kShuffle);
  for (Position& position : buffer) position = Isa::Next(walk);
  Position drawn[kDistance];
  const auto draw = [&](Position & row) __attribute__((always_inline)) {
    Position& cell = buffer[dice.Below(kShuffle)];
    row = cell;
    for (int line = 0; line < 4; ++line) {
      _mm_prefetch(reinterpret_cast<const char*>(row.planes + 64 * line), _MM_HINT_T0);
    }
    cell = Isa::Next(walk);
  };
  for (Position& row : drawn) draw(row);
  for (uint64_t step = 0; !stop.load(std::memory_order_relaxed); ++step) {
    T* const board = ring + step % kSlots * kSlotValues;
    T* const flags = board + size_t{kBoard} * kBatch;
    T* const score = flags + kFlags * kBatch;
    for (int first = 0; first < kBatch; first += kBlockRows) {
      alignas(64) T s[kBlockRows], m[kBlockRows];
      // Reading and transforming take turns row by row: the stores of one row drain while the next
      // record is read.
      for (int i = 0; i < kBlockRows; ++i) {
        const Position row = drawn[i % kDistance];
        Isa::Planes(row.planes, board + size_t{kBoard} * (first + i), flags + kFlags * (first + i));
        s[i] = static_cast<T>(row.score);
        m[i] = (row.planes[kPlaneBytes - 1] & kMateBit) != 0 ? T{1} : T{0};
        draw(drawn[i % kDistance]);
      }
      Isa::Scores(s, m, ScoreConstants{}, score + first);
    }
    counter.Add(kBatch);
  }
}

#define PENSTOCK_WALK_AVX512                                                    \
  __attribute__((                                                               \
      target("avx2,fma,bmi,bmi2,avx512f,avx512bw,avx512vl,avx512dq,vpclmulqdq," \
             "pclmul")))
#define PENSTOCK_WALK_AVX2 __attribute__((target("avx2,fma,bmi,bmi2,pclmul")))

struct Avx512 {
  PENSTOCK_WALK_AVX512 static Position Next(RecordWalk& walk) {
    return ParsePosition(walk.Next<Crc32cOfRecordAvx512>());
  }
  template <typename T>
  PENSTOCK_AVX512 static void Planes(const uint8_t* planes, T* board, T* flags) {
    PlanesAvx512(planes, board, flags);
  }
  template <typename T>
  PENSTOCK_AVX512 static void Scores(const T* s, const T* m, const ScoreConstants& constants,
                                     T* out) {
    ScoresAvx512(s, m, constants, out);
  }
};

struct Avx2 {
  PENSTOCK_WALK_AVX2 static Position Next(RecordWalk& walk) {
    return ParsePosition(walk.Next<Crc32cOfRecord>());
  }
  template <typename T>
  PENSTOCK_AVX2 static void Planes(const uint8_t* planes, T* board, T* flags) {
    PlanesAvx2(planes, board, flags);
  }
  template <typename T>
  PENSTOCK_AVX2 static void Scores(const T* s, const T* m, const ScoreConstants& constants,
                                   T* out) {
    ScoresAvx2(s, m, constants, out);
  }
};

template <typename T>
PENSTOCK_WALK_AVX512 void WorkAvx512(const std::vector<MappedFile>& files, size_t thread,
                                     size_t threads, LoopCounter& counter,
                                     const std::atomic<bool>& stop) {
  if (thread == 0) Check<T, Avx512>(files);
  Work<T, Avx512>(files, thread, threads, counter, stop);
}

template <typename T>
PENSTOCK_WALK_AVX2 void WorkAvx2(const std::vector<MappedFile>& files, size_t thread,
                                 size_t threads, LoopCounter& counter,
                                 const std::atomic<bool>& stop) {
  if (thread == 0) Check<T, Avx2>(files);
  Work<T, Avx2>(files, thread, threads, counter, stop);
}

template <typename T>
void Run(const LoopFlags& flags) {
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
    (has_avx512 ? WorkAvx512<T> : WorkAvx2<T>)(files, thread, flags.threads, counter, stop);
  });
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  const penstock::bench::LoopFlags flags =
      penstock::bench::ParseFlags(argc, argv, /*has_dtype=*/true);
  if (flags.dtype == "float32") {
    penstock::bench::Run<float>(flags);
  } else {
    penstock::bench::Run<double>(flags);
  }
}
