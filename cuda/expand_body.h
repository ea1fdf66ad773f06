// What the device computes, as plain functions: nvcc compiles them into kernels (expand.cu), and any
// compiler into functions of the host, with which tests compare the same bytes with the CPU's.
//
// A work item makes kItemValues consecutive values, or the eight bits of one byte; items beyond the end do nothing. Values are stored
// side by side in one go where they may be: single stores of neighbouring threads would each touch the same lines of memory.
// Arithmetic is IEEE's, each operation rounded by itself (nvcc: --fmad=false).
//
// Threads:  items are independent.
// Owns:     nothing; memory is the caller's and large enough.
// Limits:   as in expansion.h, which checks them.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define PENSTOCK_HOST_DEVICE __host__ __device__ inline
#else
#define PENSTOCK_HOST_DEVICE inline
#endif

namespace penstock::cuda {

inline constexpr uint32_t kMaxChannels = 16;
inline constexpr uint32_t kItemValues = 4;

// Types of the device that C++ has not: as bits, so that stores need no conversion.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

PENSTOCK_HOST_DEVICE uint32_t BitsOf(float value) {
  union {
    float number;
    uint32_t bits;
  } both;
  both.number = value;
  return both.bits;
}

// To the nearest, ties to even.
PENSTOCK_HOST_DEVICE uint16_t ToHalfBits(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = bits >> 16 & 0x8000;
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00 | (magnitude >> 13 & 0x3FF));
  if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude >= 0x38800000) {
    const uint32_t odd = magnitude >> 13 & 1;
    return static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xFFF + odd) >> 13));
  }
  const uint32_t exponent = magnitude >> 23;
  // Below half of the least number that is not normal.
  if (exponent < 102) return static_cast<uint16_t>(sign);
  const uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
  const uint32_t shift = 126 - exponent;
  const uint32_t kept = fraction >> shift;
  const uint32_t rest = fraction & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return static_cast<uint16_t>(sign | (kept + (rest > half || (rest == half && (kept & 1) != 0))));
}

PENSTOCK_HOST_DEVICE uint16_t ToBrainBits(float value) {
  const uint32_t bits = BitsOf(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

// How a type is computed with and stored.
template <typename To>
struct Output {
  using Number = To;
  PENSTOCK_HOST_DEVICE static To Store(Number number) { return number; }
};
template <>
struct Output<uint8_t> {
  using Number = float;
  PENSTOCK_HOST_DEVICE static uint8_t Store(float number) { return static_cast<uint8_t>(number); }
};
template <>
struct Output<Half> {
  using Number = float;
  PENSTOCK_HOST_DEVICE static Half Store(float number) { return {ToHalfBits(number)}; }
};
template <>
struct Output<Brain> {
  using Number = float;
  PENSTOCK_HOST_DEVICE static Brain Store(float number) { return {ToBrainBits(number)}; }
};

// Values that are stored, or loaded, in one go.
template <typename T, uint32_t N>
struct alignas(N * sizeof(T) < 16 ? N * sizeof(T) : 16) Pack {
  T values[N];
};

// The first `count` of the values.
template <typename T, uint32_t N>
PENSTOCK_HOST_DEVICE void StorePack(const Pack<T, N>& pack, uint32_t count, T* to) {
  if (count == N && reinterpret_cast<uintptr_t>(to) % alignof(Pack<T, N>) == 0) {
    *reinterpret_cast<Pack<T, N>*>(to) = pack;
    return;
  }
  for (uint32_t i = 0; i < count; ++i) to[i] = pack.values[i];
}

PENSTOCK_HOST_DEVICE uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// (x / scale - mean) / deviation of uint8. `image_values` of each of `images` rows, in `channels`.
struct NormalizeArguments {
  uint64_t from;
  uint64_t to;
  uint64_t images;
  uint32_t image_values;
  uint32_t channels;
  uint32_t channels_first;
  uint32_t per_channel;  // 0: the first number of each is that of all
  double scale[kMaxChannels];
  double mean[kMaxChannels];
  double deviation[kMaxChannels];
};

// All that can come out: of each byte, for each channel that has numbers of its own. A block makes the table once, since two
// divisions for each value would take longer than its way through memory.
inline constexpr uint32_t kBytes = 256;
inline constexpr uint32_t kMaxNormalized = kMaxChannels * kBytes;

PENSTOCK_HOST_DEVICE uint32_t NumNormalized(const NormalizeArguments& arguments) {
  return kBytes * (arguments.per_channel != 0 ? arguments.channels : 1);
}

// Entry `which` of NumNormalized().
template <typename To>
PENSTOCK_HOST_DEVICE To Normalized(const NormalizeArguments& arguments, uint32_t which) {
  using Number = typename Output<To>::Number;
  const uint32_t channel = which / kBytes;
  Number number = static_cast<Number>(which % kBytes);
  number = number / static_cast<Number>(arguments.scale[channel]);
  number = number - static_cast<Number>(arguments.mean[channel]);
  number = number / static_cast<Number>(arguments.deviation[channel]);
  return Output<To>::Store(number);
}

template <typename To>
PENSTOCK_HOST_DEVICE void NormalizeItem(const NormalizeArguments& arguments, const To* table,
                                        uint64_t image, uint32_t item) {
  const uint32_t first = item * kItemValues;
  if (first >= arguments.image_values) return;
  const auto* from =
      reinterpret_cast<const uint8_t*>(arguments.from) + image * arguments.image_values;
  auto* to = reinterpret_cast<To*>(arguments.to) + image * arguments.image_values;
  const uint32_t channels = arguments.channels;
  const uint32_t count = Least(kItemValues, arguments.image_values - first);
  Pack<To, kItemValues> made = {};
  if (arguments.channels_first != 0) {
    const uint32_t pixels = arguments.image_values / channels;
    uint32_t channel = first / pixels;
    uint32_t pixel = first % pixels;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t own = arguments.per_channel != 0 ? channel * kBytes : 0;
      made.values[i] = table[own + from[pixel * channels + channel]];
      if (++pixel == pixels) {
        pixel = 0;
        ++channel;
      }
    }
  } else {
    using Read = Pack<uint8_t, kItemValues>;
    Read read = {};
    if (count == kItemValues && reinterpret_cast<uintptr_t>(from + first) % alignof(Read) == 0) {
      read = *reinterpret_cast<const Read*>(from + first);
    } else {
      for (uint32_t i = 0; i < count; ++i) read.values[i] = from[first + i];
    }
    uint32_t channel = first % channels;
    for (uint32_t i = 0; i < count; ++i) {
      const uint32_t own = arguments.per_channel != 0 ? channel * kBytes : 0;
      made.values[i] = table[own + read.values[i]];
      if (++channel == channels) channel = 0;
    }
  }
  StorePack(made, count, to + first);
}

struct OneHotArguments {
  uint64_t from;
  uint64_t to;
  uint64_t indices;
  uint32_t depth;
};

template <typename From, typename To>
PENSTOCK_HOST_DEVICE void OneHotItem(const OneHotArguments& arguments, uint64_t row,
                                     uint32_t item) {
  const uint32_t first = item * kItemValues;
  if (first >= arguments.depth) return;
  const int64_t index = static_cast<int64_t>(reinterpret_cast<const From*>(arguments.from)[row]);
  auto* to = reinterpret_cast<To*>(arguments.to) + row * arguments.depth;
  Pack<To, kItemValues> made = {};
  for (uint32_t i = 0; i < kItemValues; ++i) {
    made.values[i] = Output<To>::Store(index == static_cast<int64_t>(first + i) ? 1 : 0);
  }
  StorePack(made, Least(kItemValues, arguments.depth - first), to + first);
}

struct UnpackBitsArguments {
  uint64_t from;
  uint64_t to;
  uint64_t bytes;
};

template <typename To>
PENSTOCK_HOST_DEVICE void UnpackBitsItem(const UnpackBitsArguments& arguments, uint64_t byte) {
  if (byte >= arguments.bytes) return;
  const uint32_t bits = reinterpret_cast<const uint8_t*>(arguments.from)[byte];
  auto* to = reinterpret_cast<To*>(arguments.to) + byte * 8;
  Pack<To, 8> made = {};
  for (uint32_t i = 0; i < 8; ++i) {
    made.values[i] =
        Output<To>::Store(static_cast<typename Output<To>::Number>(bits >> (7 - i) & 1));
  }
  StorePack(made, 8, to);
}

// X(the name's end, the C++ type) of every dtype that an expansion gives.
#define PENSTOCK_EXPANSION_FLOATS(X)   \
  X(float16, ::penstock::cuda::Half)   \
  X(bfloat16, ::penstock::cuda::Brain) \
  X(float32, float)                    \
  X(float64, double)
#define PENSTOCK_EXPANSION_DTYPES(X) PENSTOCK_EXPANSION_FLOATS(X) X(uint8, uint8_t)
// X(the name's end, the C++ type) of an index.
#define PENSTOCK_EXPANSION_INDICES(X) X(uint8, uint8_t) X(int32, int32_t) X(int64, int64_t)

}  // namespace penstock::cuda
