// What the device computes, as plain functions: nvcc compiles them into kernels (expand.cu), and any
// compiler into functions of the host, with which tests compare the same bytes with the CPU's.
//
// A work item makes kItemValues consecutive values, or the eight bits of one byte; items beyond the end do nothing.
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

template <typename To>
PENSTOCK_HOST_DEVICE void NormalizeItem(const NormalizeArguments& arguments, uint64_t image,
                                        uint32_t item) {
  using Number = typename Output<To>::Number;
  const uint32_t first = item * kItemValues;
  if (first >= arguments.image_values) return;
  const auto* from =
      reinterpret_cast<const uint8_t*>(arguments.from) + image * arguments.image_values;
  auto* to = reinterpret_cast<To*>(arguments.to) + image * arguments.image_values;
  const uint32_t channels = arguments.channels;
  const uint32_t pixels = arguments.image_values / channels;
  // Of the value that is written next.
  uint32_t channel = arguments.channels_first != 0 ? first / pixels : first % channels;
  uint32_t pixel = arguments.channels_first != 0 ? first % pixels : first / channels;
  for (uint32_t i = first; i < first + kItemValues && i < arguments.image_values; ++i) {
    const uint32_t which = arguments.per_channel != 0 ? channel : 0;
    Number number = static_cast<Number>(from[pixel * channels + channel]);
    number = number / static_cast<Number>(arguments.scale[which]);
    number = number - static_cast<Number>(arguments.mean[which]);
    number = number / static_cast<Number>(arguments.deviation[which]);
    to[i] = Output<To>::Store(number);
    if (arguments.channels_first != 0) {
      if (++pixel == pixels) {
        pixel = 0;
        ++channel;
      }
    } else if (++channel == channels) {
      channel = 0;
      ++pixel;
    }
  }
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
  for (uint32_t i = first; i < first + kItemValues && i < arguments.depth; ++i) {
    to[i] = Output<To>::Store(index == static_cast<int64_t>(i) ? 1 : 0);
  }
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
  for (uint32_t i = 0; i < 8; ++i) {
    to[i] = Output<To>::Store(static_cast<typename Output<To>::Number>(bits >> (7 - i) & 1));
  }
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
