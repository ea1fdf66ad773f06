// The chess pipeline's `map`: Program::Run on blocks of 32 rows against a hand-written loop for
// AVX-512, both into a ring of three slots of 512 rows. Counter ns_row is nanoseconds a row of one
// core.
#include <benchmark/benchmark.h>
#include <immintrin.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/memory_block.h"
#include "server/expr/program.h"

namespace penstock {
namespace {

constexpr int kRows = 512;
constexpr int kSlots = 3;
constexpr int kBlock = 32;
constexpr int kBytes = 194;
constexpr int kRecords = 8192;
constexpr int kChannels[24] = {0, 4, 8,  12, 16, 20, 1, 5, 9,  13, 17, 21,
                               2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23};

struct Data {
  std::vector<uint8_t> bytes = std::vector<uint8_t>(kRecords * 256 + 64);
  std::vector<int64_t> score = std::vector<int64_t>(kRecords);
  std::vector<RowBytes> rows = std::vector<RowBytes>(kRecords);
  Data() {
    std::mt19937_64 random(7);
    for (int i = 0; i < kRecords; ++i) {
      uint8_t* row = bytes.data() + i * 256;
      for (int j = 0; j < kBytes; ++j)
        row[j] = static_cast<uint8_t>(random() & random() & random());
      rows[i] = {row, kBytes};
      score[i] = static_cast<int64_t>(random() % 2000) - 1000;
    }
  }
};

const Data& Input() {
  static const Data data;
  return data;
}

expr::MapSource Chess(const std::string& type) {
  expr::MapSource map;
  map.stage = "map";
  map.constants = {{"A", DType::kInvalid, false, {}, {0.9}, {}},
                   {"K", DType::kInvalid, false, {}, {400}, {}},
                   {"B", DType::kInvalid, false, {}, {50}, {}}};
  expr::NamedConstant sign{"SIGN", DType::kInt8, false, {}, {}, {}};
  for (int i = 0; i < 24; ++i) sign.int_values.push_back(i % 12 < 6 ? 1 : -1);
  map.constants.push_back(sign);
  std::string channels;
  for (const int channel : kChannels) channels += std::to_string(channel) + ",";
  map.lets = {"bits = unpack_bits(d)",
              "planes = reshape(int8(bits[:1536]), [8, 8, 24])[..., [" + channels + "]]",
              "mate = " + type + "(bits[1546])", "v = " + type + "(s)"};
  map.outs = {
      "board = " + type + "(planes * SIGN)", "flags = " + type + "(bits[1536:1546])",
      "score = (1 - mate)*A*tanh(v/K) + mate*sign(v)*(A + (1 - A)/(B - 1)*maximum(0, B - abs(v)))"};
  return map;
}

template <typename T>
struct Ring {
  static T* Allocate(MemoryBlock& memory, size_t values) {
    memory = AllocateMemoryBlock((values + 64) * sizeof(T));
    return reinterpret_cast<T*>(std::memset(memory.get(), 1, (values + 64) * sizeof(T)));
  }
  MemoryBlock memory[3];
  T* const board = Allocate(memory[0], kSlots* kRows * 1536);
  T* const flags = Allocate(memory[1], kSlots* kRows * 10);
  T* const score = Allocate(memory[2], kSlots* kRows);
};

template <typename T>
void RunProgram(benchmark::State& state, const std::string& type) {
  const Signature in = {{"d", {DType::kUint8, {kBytes}}}, {"s", {DType::kInt64, {}}}};
  auto program = expr::Compile(in, {Chess(type)});
  if (!program.ok()) return state.SkipWithError(program.status().ToString().c_str());
  const Data& data = Input();
  Ring<T> ring;
  Arena arena;
  size_t row = 0;
  for (auto _ : state) {
    const size_t record = row % kRecords;
    const size_t slot_row = row % (kSlots * kRows);
    const Column columns[] = {
        {nullptr, 0, data.rows.data() + record},
        {reinterpret_cast<uint8_t*>(const_cast<int64_t*>(data.score.data() + record)), 8, nullptr}};
    uint8_t* const out[] = {reinterpret_cast<uint8_t*>(ring.board + slot_row * 1536),
                            reinterpret_cast<uint8_t*>(ring.flags + slot_row * 10),
                            reinterpret_cast<uint8_t*>(ring.score + slot_row)};
    benchmark::DoNotOptimize((*program)->Run(kBlock, columns, out, arena));
    arena.Reset();
    row += kBlock;
  }
  state.counters["ns_row"] = benchmark::Counter(
      static_cast<double>(row) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

// The strictest form: shuffled masks of three bytes of planes at a time, masked moves of +1 and -1,
// tanh by libm.
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512vbmi")

struct HandTables {
  alignas(64) uint8_t shuffle[3][64];
  alignas(64) uint8_t mask[3][64];
  alignas(64) float sign[48];
  alignas(64) double sign64[24];
  HandTables() {
    for (int i = 0; i < 192; ++i) {
      const int bit = i / 24 * 24 + kChannels[i % 24];
      shuffle[i / 64][i % 64] = static_cast<uint8_t>(bit / 8);
      mask[i / 64][i % 64] = static_cast<uint8_t>(0x80 >> bit % 8);
    }
    for (int i = 0; i < 48; ++i) sign[i] = i % 12 < 6 ? 1 : -1;
    for (int i = 0; i < 24; ++i) sign64[i] = i % 12 < 6 ? 1 : -1;
  }
};

template <typename T>
T Score(int64_t s, T mate) {
  const T v = static_cast<T>(s);
  const T a = static_cast<T>(0.9);
  const T sign = static_cast<T>((v > 0) - (v < 0));
  const T near = std::max(T(0), 50 - std::fabs(v));
  return (1 - mate) * a * std::tanh(v / 400) + mate * sign * (a + (1 - a) / 49 * near);
}

void HandRow(const HandTables& t, const uint8_t* row, int64_t s, float* board, float* flags,
             float* score) {
  for (int p = 0; p < 8; ++p) {
    const __m512i bytes =
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 24 * p)));
    for (int g = 0; g < 3; ++g) {
      const __m512i chosen = _mm512_permutexvar_epi8(_mm512_load_si512(t.shuffle[g]), bytes);
      const uint64_t bits = _mm512_test_epi8_mask(chosen, _mm512_load_si512(t.mask[g]));
      for (int i = 0; i < 4; ++i) {
        const int phase = (g * 64 + i * 16) % 48;
        _mm512_storeu_ps(
            board, _mm512_maskz_loadu_ps(static_cast<__mmask16>(bits >> (16 * i)), t.sign + phase));
        board += 16;
      }
    }
  }
  for (int i = 0; i < 10; ++i) flags[i] = row[192 + i / 8] >> (7 - i % 8) & 1;
  *score = Score<float>(s, row[193] >> 5 & 1);
}

void HandRow(const HandTables& t, const uint8_t* row, int64_t s, double* board, double* flags,
             double* score) {
  for (int p = 0; p < 8; ++p) {
    const __m512i bytes =
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row + 24 * p)));
    for (int g = 0; g < 3; ++g) {
      const __m512i chosen = _mm512_permutexvar_epi8(_mm512_load_si512(t.shuffle[g]), bytes);
      const uint64_t bits = _mm512_test_epi8_mask(chosen, _mm512_load_si512(t.mask[g]));
      for (int i = 0; i < 8; ++i) {
        const int phase = (g * 64 + i * 8) % 24;
        _mm512_storeu_pd(
            board, _mm512_maskz_loadu_pd(static_cast<__mmask8>(bits >> (8 * i)), t.sign64 + phase));
        board += 8;
      }
    }
  }
  for (int i = 0; i < 10; ++i) flags[i] = row[192 + i / 8] >> (7 - i % 8) & 1;
  *score = Score<double>(s, row[193] >> 5 & 1);
}
#pragma GCC pop_options

template <typename T>
void RunHand(benchmark::State& state) {
  if (!__builtin_cpu_supports("avx512vbmi")) return state.SkipWithError("needs AVX-512 VBMI");
  static const HandTables tables;
  const Data& data = Input();
  Ring<T> ring;
  size_t row = 0;
  for (auto _ : state) {
    for (int i = 0; i < kBlock; ++i, ++row) {
      const size_t record = row % kRecords;
      const size_t slot_row = row % (kSlots * kRows);
      HandRow(tables, data.rows[record].data, data.score[record], ring.board + slot_row * 1536,
              ring.flags + slot_row * 10, ring.score + slot_row);
    }
    benchmark::ClobberMemory();
  }
  state.counters["ns_row"] = benchmark::Counter(
      static_cast<double>(row) * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void ProgramFloat32(benchmark::State& state) { RunProgram<float>(state, "float32"); }
void ProgramFloat64(benchmark::State& state) { RunProgram<double>(state, "float64"); }
void HandFloat32(benchmark::State& state) { RunHand<float>(state); }
void HandFloat64(benchmark::State& state) { RunHand<double>(state); }
BENCHMARK(ProgramFloat32);
BENCHMARK(HandFloat32);
BENCHMARK(ProgramFloat64);
BENCHMARK(HandFloat64);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
