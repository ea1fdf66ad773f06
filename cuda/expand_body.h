// What the device computes, as plain functions: nvcc compiles them into kernels (expand.cu), and any
// compiler into functions of the host, with which tests compare the same bytes with the CPU's.
//
// A work item makes the values of one store of 16 bytes (of an image whose channels go first, one store for each channel); items beyond
// the end do nothing. Narrower stores, or strides between those of neighbouring threads, would touch lines of memory more than once.
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
inline constexpr uint32_t kStoreBytes = 16;
// Of one-hot rows, whose depth is seldom a multiple of more.
inline constexpr uint32_t kOneHotValues = 4;
template <typename T>
inline constexpr uint32_t kStoreValues = kStoreBytes / sizeof(T);

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

template <typename T, uint32_t N>
PENSTOCK_HOST_DEVICE bool IsAligned(const T* at) {
  return reinterpret_cast<uintptr_t>(at) % alignof(Pack<T, N>) == 0;
}

// The loops over a pack go to its end, so that they are unrolled and its values stay in registers.

// The first `count` of the values.
template <typename T, uint32_t N>
PENSTOCK_HOST_DEVICE void StorePack(const Pack<T, N>& pack, uint32_t count, T* to) {
  if (count == N && IsAligned<T, N>(to)) {
    *reinterpret_cast<Pack<T, N>*>(to) = pack;
    return;
  }
  for (uint32_t i = 0; i < N; ++i) {
    if (i < count) to[i] = pack.values[i];
  }
}

PENSTOCK_HOST_DEVICE uint32_t Least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// (x / scale - mean) / deviation of uint8: `images` rows of `pixels`, each of `channels`.
struct NormalizeArguments {
  uint64_t from;
  uint64_t to;
  uint64_t images;
  uint32_t pixels;
  uint32_t channels;
  uint32_t channels_first;
  uint32_t per_channel;  // 0: the first number of each is that of all
  double scale[kMaxChannels];
  double mean[kMaxChannels];
  double deviation[kMaxChannels];
};

// How many items an image has.
template <typename To>
PENSTOCK_HOST_DEVICE uint32_t NormalizeItems(const NormalizeArguments& arguments) {
  const uint32_t values =
      arguments.pixels * (arguments.channels_first != 0 ? 1 : arguments.channels);
  return (values + kStoreValues<To> - 1) / kStoreValues<To>;
}

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

// kStoreValues consecutive values of an image. kChannels: how many there are, 0 where the compiler is not to know.
template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizeValues(const NormalizeArguments& arguments, const To* table,
                                          uint64_t image, uint32_t item) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint32_t channels = kChannels != 0 ? kChannels : arguments.channels;
  const uint32_t image_values = arguments.pixels * channels;
  const uint32_t first = item * kValues;
  const uint32_t count = Least(kValues, image_values - first);
  const auto* from =
      reinterpret_cast<const uint8_t*>(arguments.from) + image * image_values + first;
  Pack<uint8_t, kValues> read = {};
  if (count == kValues && IsAligned<uint8_t, kValues>(from)) {
    read = *reinterpret_cast<const Pack<uint8_t, kValues>*>(from);
  } else {
    for (uint32_t i = 0; i < kValues; ++i) {
      if (i < count) read.values[i] = from[i];
    }
  }
  Pack<To, kValues> made;
  uint32_t channel = arguments.per_channel != 0 ? first % channels : 0;
  for (uint32_t i = 0; i < kValues; ++i) {
    made.values[i] = table[channel * kBytes + read.values[i]];
    if (arguments.per_channel != 0 && ++channel == channels) channel = 0;
  }
  StorePack(made, count, reinterpret_cast<To*>(arguments.to) + image * image_values + first);
}

// kStoreValues consecutive pixels of an image whose channels go first.
template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizePixels(const NormalizeArguments& arguments, const To* table,
                                          uint64_t image, uint32_t item) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint32_t channels = kChannels != 0 ? kChannels : arguments.channels;
  const uint32_t first = item * kValues;
  const uint32_t count = Least(kValues, arguments.pixels - first);
  const uint64_t image_first = image * arguments.pixels * channels;
  const auto* from =
      reinterpret_cast<const uint8_t*>(arguments.from) + image_first + uint64_t{first} * channels;
  auto* to = reinterpret_cast<To*>(arguments.to) + image_first + first;
  const uint32_t own = arguments.per_channel != 0 ? kBytes : 0;
  if constexpr (kChannels != 0) {
    // Each byte is read once, with its neighbours.
    Pack<uint8_t, kValues> read[kChannels] = {};
    const bool is_whole = count == kValues && IsAligned<uint8_t, kValues>(from);
    for (uint32_t part = 0; part < kChannels; ++part) {
      const uint8_t* next = from + part * kValues;
      if (is_whole) {
        read[part] = *reinterpret_cast<const Pack<uint8_t, kValues>*>(next);
        continue;
      }
      for (uint32_t i = 0; i < kValues; ++i) {
        if (part * kValues + i < count * kChannels) read[part].values[i] = next[i];
      }
    }
    for (uint32_t channel = 0; channel < kChannels; ++channel) {
      Pack<To, kValues> made;
      for (uint32_t i = 0; i < kValues; ++i) {
        const uint32_t at = i * kChannels + channel;
        made.values[i] = table[channel * own + read[at / kValues].values[at % kValues]];
      }
      StorePack(made, count, to + uint64_t{channel} * arguments.pixels);
    }
  } else {
    for (uint32_t channel = 0; channel < channels; ++channel) {
      Pack<To, kValues> made = {};
      for (uint32_t i = 0; i < kValues; ++i) {
        if (i < count) made.values[i] = table[channel * own + from[i * channels + channel]];
      }
      StorePack(made, count, to + uint64_t{channel} * arguments.pixels);
    }
  }
}

// Item `item` of NormalizeItems() of an image.
template <typename To>
PENSTOCK_HOST_DEVICE void NormalizeItem(const NormalizeArguments& arguments, const To* table,
                                        uint64_t image, uint32_t item) {
  const bool is_photo = arguments.channels == 3;
  if (arguments.channels_first != 0) {
    is_photo ? NormalizePixels<To, 3>(arguments, table, image, item)
             : NormalizePixels<To, 0>(arguments, table, image, item);
  } else {
    is_photo ? NormalizeValues<To, 3>(arguments, table, image, item)
             : NormalizeValues<To, 0>(arguments, table, image, item);
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
  const uint32_t first = item * kOneHotValues;
  if (first >= arguments.depth) return;
  const int64_t index = static_cast<int64_t>(reinterpret_cast<const From*>(arguments.from)[row]);
  auto* to = reinterpret_cast<To*>(arguments.to) + row * arguments.depth;
  Pack<To, kOneHotValues> made;
  for (uint32_t i = 0; i < kOneHotValues; ++i) {
    made.values[i] = Output<To>::Store(index == static_cast<int64_t>(first + i) ? 1 : 0);
  }
  StorePack(made, Least(kOneHotValues, arguments.depth - first), to + first);
}

struct UnpackBitsArguments {
  uint64_t from;
  uint64_t to;
  uint64_t bytes;
};

template <typename To>
PENSTOCK_HOST_DEVICE uint64_t UnpackBitsItems(const UnpackBitsArguments& arguments) {
  return (arguments.bytes * 8 + kStoreValues<To> - 1) / kStoreValues<To>;
}

template <typename To>
PENSTOCK_HOST_DEVICE void UnpackBitsItem(const UnpackBitsArguments& arguments, uint64_t item) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint64_t first = item * kValues;
  const uint64_t values = arguments.bytes * 8;
  if (first >= values) return;
  const uint32_t count = values - first < kValues ? static_cast<uint32_t>(values - first) : kValues;
  const auto* from = reinterpret_cast<const uint8_t*>(arguments.from) + first / 8;
  // The bits from the first one on, in the highest places.
  uint32_t bits = uint32_t{from[0]} << 24;
  if (kValues > 8 && count > 8) bits |= uint32_t{from[1]} << 16;
  bits <<= first % 8;
  Pack<To, kValues> made;
  for (uint32_t i = 0; i < kValues; ++i) {
    made.values[i] =
        Output<To>::Store(static_cast<typename Output<To>::Number>(bits >> (31 - i) & 1));
  }
  StorePack(made, count, reinterpret_cast<To*>(arguments.to) + first);
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
