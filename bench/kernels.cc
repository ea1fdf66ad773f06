// Expressions against hand-written fused loops over the same rows, one thread:
// `bench_kernels [CASE]`. `./dev bench kernels` has bench/kernels.py run it, which adds NumPy as a
// peer.
//
// Prints a line of JSON a case: {"case", "peer": "loop", "ours", "theirs" (ns a row), "ratio" (ours
// / theirs, the median of turns), "min", "max", "runs"}. Both sides are timed by turns, and write
// into memory of their own. Rows of floats and what is made of them are 1.5 MiB, which L3 holds: a
// loop that only copies them takes some 1.5 ns a vector of 64 bytes.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "server/expr/program.h"

namespace penstock::bench {
namespace {

constexpr int kRows = 16;
constexpr int kSide = 64;
constexpr int kPixels = kSide * kSide;
constexpr int kValues = kPixels * 3;

struct Memory {
  explicit Memory(size_t bytes) {
    if (posix_memalign(&data, 64, bytes + 64) != 0) std::abort();
    std::memset(data, 1, bytes + 64);
  }
  ~Memory() { std::free(data); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  template <typename T>
  T* As() const {
    return static_cast<T*>(data);
  }
  void* data = nullptr;
};

uint64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

struct Input {
  Memory image{size_t{kRows} * kValues};
  Memory floats{size_t{kRows} * kValues * sizeof(float)};
  Memory labels{size_t{kRows} * sizeof(int64_t)};
  Input() {
    uint32_t state = 1;
    for (int i = 0; i < kRows * kValues; ++i) {
      state = state * 1664525 + 1013904223;
      image.As<uint8_t>()[i] = static_cast<uint8_t>(state >> 24);
      floats.As<float>()[i] = static_cast<float>(state >> 8) * 0x1p-22f - 2;
    }
    for (int i = 0; i < kRows; ++i) labels.As<int64_t>()[i] = i * 61 % 1000;
  }
};

struct Case {
  const char* name;
  const char* text;
  size_t out_values;
  // One row: image, floats, label, out.
  void (*loop)(const uint8_t*, const float*, int64_t, float*);
};

// Every loop is compiled as the kernels are, with the machine's widest vectors.
#define PENSTOCK_WIDE __attribute__((target_clones("avx512f", "avx2", "default"), noinline))

PENSTOCK_WIDE void NormaliseToPlanes(const uint8_t* image, const float*, int64_t, float* out) {
  for (int c = 0; c < 3; ++c) {
    const float mean[] = {123.675f, 116.28f, 103.53f}, std[] = {58.395f, 57.12f, 57.375f};
    for (int i = 0; i < kPixels; ++i)
      out[c * kPixels + i] = (static_cast<float>(image[3 * i + c]) - mean[c]) / std[c];
  }
}
PENSTOCK_WIDE void Gather(const uint8_t* image, const float*, int64_t, float* out) {
  for (int i = 0; i < kPixels; ++i) {
    for (int c = 0; c < 3; ++c) out[3 * i + c] = static_cast<float>(image[3 * i + 2 - c]);
  }
}
PENSTOCK_WIDE void Where(const uint8_t*, const float* x, int64_t, float* out) {
  for (int i = 0; i < kValues; ++i) out[i] = x[i] > 0 ? x[i] : x[i] * 0.01f;
}
PENSTOCK_WIDE void Scale(const uint8_t* image, const float*, int64_t, float* out) {
  for (int i = 0; i < kValues; ++i) out[i] = static_cast<float>(image[i]) / 127.5f - 1;
}
PENSTOCK_WIDE void Transpose(const uint8_t*, const float* x, int64_t, float* out) {
  for (int y = 0; y < kSide; ++y) {
    for (int c = 0; c < 3 * kSide; ++c) out[c * kSide + y] = x[y * 3 * kSide + c];
  }
}
PENSTOCK_WIDE void SubtractMean(const uint8_t*, const float* x, int64_t, float* out) {
  constexpr int kSums = 64;
  float sums[kSums] = {};
  for (int i = 0; i < kValues; i += kSums) {
    for (int k = 0; k < kSums; ++k) sums[k] += x[i + k];
  }
  float sum = 0;
  for (const float part : sums) sum += part;
  const float mean = sum / kValues;
  for (int i = 0; i < kValues; ++i) out[i] = x[i] - mean;
}
PENSTOCK_WIDE void OneHot(const uint8_t*, const float*, int64_t label, float* out) {
  std::memset(out, 0, 1000 * sizeof(float));
  out[label] = 1;
}
// By the C library's functions, which are called value by value.
PENSTOCK_WIDE void LogTanh(const uint8_t*, const float* x, int64_t, float* out) {
  for (int i = 0; i < kValues; ++i) out[i] = std::tanh(std::log(x[i] * x[i] + 1));
}
PENSTOCK_WIDE void Rational(const uint8_t*, const float* x, int64_t, float* out) {
  for (int i = 0; i < kValues; ++i) out[i] = (x[i] + 1) * (x[i] - 1) / (x[i] * x[i] + 1);
}

constexpr Case kCases[] = {
    {"normalise_to_planes", "transpose((image - MEAN) / STD, [2, 0, 1])", kValues,
     NormaliseToPlanes},
    {"gather", "float32(image[..., [2, 1, 0]])", kValues, Gather},
    {"where", "where(x > 0, x, x * 0.01)", kValues, Where},
    {"scale", "image / 127.5 - 1", kValues, Scale},
    {"transpose", "transpose(reshape(x, [64, 192]))", kValues, Transpose},
    {"one_hot", "one_hot(label, 1000)", 1000, OneHot},
    {"subtract_mean", "x - mean(x)", kValues, SubtractMean},
    {"log_tanh", "tanh(log(x * x + 1))", kValues, LogTanh},
    {"rational", "(x + 1) * (x - 1) / (x * x + 1)", kValues, Rational},
};

double Measure(const std::function<void()>& run) {
  constexpr uint64_t kWindowNs = 20'000'000;
  uint64_t passes = 0;
  const uint64_t begin = NowNs();
  uint64_t now = begin;
  for (; now - begin < kWindowNs; now = NowNs()) {
    for (int i = 0; i < 8; ++i) run();
    passes += 8;
  }
  return static_cast<double>(now - begin) / static_cast<double>(passes * kRows);
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Run(const Case& test, const Input& input) {
  constexpr int kTurns = 9;
  const Signature signature = {{"image", {DType::kUint8, {kSide, kSide, 3}}},
                               {"x", {DType::kFloat32, {kSide, kSide, 3}}},
                               {"label", {DType::kInt64, {}}}};
  expr::MapSource map;
  map.stage = "map";
  map.constants = {{"MEAN", DType::kFloat32, true, {3}, {123.675, 116.28, 103.53}, {}},
                   {"STD", DType::kFloat32, true, {3}, {58.395, 57.12, 57.375}, {}}};
  map.outs = {std::string("y = ") + test.text};
  const auto program = expr::Compile(signature, {&map, 1});
  if (!program.ok()) {
    std::fprintf(stderr, "%s: %s\n", test.name, program.status().ToString().c_str());
    return 1;
  }
  const Memory ours(kRows * test.out_values * sizeof(float));
  const Memory theirs(kRows * test.out_values * sizeof(float));
  const Column in[] = {{input.image.As<uint8_t>(), kValues},
                       {input.floats.As<uint8_t>(), kValues * sizeof(float)},
                       {input.labels.As<uint8_t>(), sizeof(int64_t)}};
  uint8_t* const out[] = {ours.As<uint8_t>()};
  Arena arena;
  const auto run_ours = [&] {
    arena.Reset();
    if (!(*program)->Run(kRows, in, out, arena).ok()) std::abort();
  };
  const auto run_theirs = [&] {
    for (int r = 0; r < kRows; ++r) {
      test.loop(input.image.As<uint8_t>() + r * kValues, input.floats.As<float>() + r * kValues,
                input.labels.As<int64_t>()[r], theirs.As<float>() + r * test.out_values);
    }
  };
  run_ours();
  run_theirs();
  for (size_t i = 0; i < kRows * test.out_values; ++i) {
    if (std::fabs(ours.As<float>()[i] - theirs.As<float>()[i]) > 1e-5f) {
      std::fprintf(stderr, "%s: value %zu differs\n", test.name, i);
      return 1;
    }
  }
  std::vector<double> our_ns, their_ns, ratios;
  for (int turn = 0; turn < kTurns; ++turn) {
    our_ns.push_back(Measure(run_ours));
    their_ns.push_back(Measure(run_theirs));
    ratios.push_back(our_ns.back() / their_ns.back());
  }
  std::printf(
      "{\"case\": \"%s\", \"peer\": \"loop\", \"ours\": %.1f, \"theirs\": %.1f, "
      "\"ratio\": %.3f, \"min\": %.3f, \"max\": %.3f, \"runs\": %d}\n",
      test.name, Median(our_ns), Median(their_ns), Median(ratios),
      *std::min_element(ratios.begin(), ratios.end()),
      *std::max_element(ratios.begin(), ratios.end()), kTurns);
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  using namespace penstock::bench;
  const Input input;
  int failed = 0;
  for (const Case& test : kCases) {
    if (argc < 2 || std::strcmp(argv[1], test.name) == 0) failed |= Run(test, input);
  }
  return failed;
}
