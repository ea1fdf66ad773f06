// What the device computes, as plain functions: nvcc compiles them into kernels (expand.cu), and any
// compiler into functions of the host, with which tests compare the same bytes with the CPU's.
//
// A work item makes the values of one store of 16 bytes (of an image whose channels go first, one store for each channel). Narrower stores,
// or strides between those of neighbouring threads, would touch lines of memory more than once; and a path that loads all that it needs
// before it looks at any of it waits for memory once. What does not lie as that needs takes the other path, value by value.
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
// Threads of a block.
inline constexpr uint32_t kBlock = 256;
inline constexpr uint32_t kStoreBytes = 16;
template <typename T>
inline constexpr uint32_t kStoreValues = kStoreBytes / sizeof(T);

// Types of the device that C++ has not, as bits: nothing here computes with them.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};

// 1 or 0.
template <typename To>
struct Truth {
  PENSTOCK_HOST_DEVICE static To Of(bool is) { return static_cast<To>(is ? 1 : 0); }
};
template <>
struct Truth<Half> {
  PENSTOCK_HOST_DEVICE static Half Of(bool is) { return {static_cast<uint16_t>(is ? 0x3C00 : 0)}; }
};
template <>
struct Truth<Brain> {
  PENSTOCK_HOST_DEVICE static Brain Of(bool is) { return {static_cast<uint16_t>(is ? 0x3F80 : 0)}; }
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

// Loops over a pack go to its end, so that they are unrolled and its values stay in registers.

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

// ---- normalize ----

inline constexpr uint32_t kTableValues = 256;
inline constexpr uint32_t kMaxTable = kMaxChannels * kTableValues;

// uint8 by a table (normalize_table.h): `images` rows of `pixels`, each of `channels`.
struct NormalizeArguments {
  uint64_t from;
  uint64_t to;
  uint64_t table;
  uint64_t images;
  uint32_t pixels;
  uint32_t channels;
  uint32_t channels_first;
  uint32_t tables;  // the channels' own, or 1
};

// How many items an image has.
template <typename To>
PENSTOCK_HOST_DEVICE uint32_t NormalizeItems(const NormalizeArguments& arguments) {
  const uint32_t values =
      arguments.pixels * (arguments.channels_first != 0 ? 1 : arguments.channels);
  return (values + kStoreValues<To> - 1) / kStoreValues<To>;
}

// Of the following functions `first` is the first of the kStoreValues values, or pixels, that they make, `from` is read from there on, and `to`
// written. `own` is the distance of the channels' tables. kChannels: how many there are, 0 where the compiler is not to know.

template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizeValues(const NormalizeArguments& arguments, const To* table,
                                          uint32_t first, const uint8_t* from, To* to) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint32_t channels = kChannels != 0 ? kChannels : arguments.channels;
  const uint32_t own = arguments.tables > 1 ? kTableValues : 0;
  uint32_t channel = first % channels;
  const uint32_t left = arguments.pixels * channels - first;
  if (left >= kValues && IsAligned<uint8_t, kValues>(from) && IsAligned<To, kValues>(to)) {
    const auto read = *reinterpret_cast<const Pack<uint8_t, kValues>*>(from);
    Pack<To, kValues> made;
    for (uint32_t i = 0; i < kValues; ++i) {
      made.values[i] = table[channel * own + read.values[i]];
      if (++channel == channels) channel = 0;
    }
    *reinterpret_cast<Pack<To, kValues>*>(to) = made;
    return;
  }
  for (uint32_t i = 0; i < kValues && i < left; ++i) {
    to[i] = table[channel * own + from[i]];
    if (++channel == channels) channel = 0;
  }
}

// Channels first.
template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizePixels(const NormalizeArguments& arguments, const To* table,
                                          uint32_t first, const uint8_t* from, To* to) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint32_t own = arguments.tables > 1 ? kTableValues : 0;
  const uint32_t left = arguments.pixels - first;
  if constexpr (kChannels != 0) {
    if (left >= kValues && arguments.pixels % kValues == 0 && IsAligned<uint8_t, kValues>(from) &&
        IsAligned<To, kValues>(to)) {
      Pack<uint8_t, kValues> read[kChannels];
      for (uint32_t part = 0; part < kChannels; ++part) {
        read[part] = *reinterpret_cast<const Pack<uint8_t, kValues>*>(from + part * kValues);
      }
      for (uint32_t channel = 0; channel < kChannels; ++channel) {
        Pack<To, kValues> made;
        for (uint32_t i = 0; i < kValues; ++i) {
          const uint32_t at = i * kChannels + channel;
          made.values[i] = table[channel * own + read[at / kValues].values[at % kValues]];
        }
        *reinterpret_cast<Pack<To, kValues>*>(to + uint64_t{channel} * arguments.pixels) = made;
      }
      return;
    }
  }
  const uint32_t channels = arguments.channels;
  for (uint32_t channel = 0; channel < channels; ++channel) {
    for (uint32_t i = 0; i < kValues && i < left; ++i) {
      to[uint64_t{channel} * arguments.pixels + i] =
          table[channel * own + from[i * channels + channel]];
    }
  }
}

// Item `item` of NormalizeItems() of an image.
template <typename To>
PENSTOCK_HOST_DEVICE void NormalizeItem(const NormalizeArguments& arguments, const To* table,
                                        uint64_t image, uint32_t item) {
  const uint32_t first = item * kStoreValues<To>;
  const uint64_t begin = image * arguments.pixels * arguments.channels;
  const auto* from = reinterpret_cast<const uint8_t*>(arguments.from) + begin;
  auto* to = reinterpret_cast<To*>(arguments.to) + begin + first;
  if (arguments.channels_first != 0) {
    from += uint64_t{first} * arguments.channels;
    arguments.channels == 3 ? NormalizePixels<To, 3>(arguments, table, first, from, to)
                            : NormalizePixels<To, 0>(arguments, table, first, from, to);
  } else {
    from += first;
    arguments.channels == 3 ? NormalizeValues<To, 3>(arguments, table, first, from, to)
                            : NormalizeValues<To, 0>(arguments, table, first, from, to);
  }
}

// The items of thread number `thread` of `threads`: a grid's width apart, so that neighbours lie side by side in memory. What an item's
// place in its row is takes a division at the first one, and an addition at each of the next.
template <typename To>
PENSTOCK_HOST_DEVICE void NormalizeThread(const NormalizeArguments& arguments, const To* table,
                                          uint32_t thread, uint32_t threads) {
  const uint32_t items = NormalizeItems<To>(arguments);
  const uint32_t step_images = threads / items;
  const uint32_t step_items = threads % items;
  uint64_t image = thread / items;
  uint32_t item = thread % items;
  while (image < arguments.images) {
    NormalizeItem<To>(arguments, table, image, item);
    image += step_images;
    item += step_items;
    if (item >= items) {
      item -= items;
      ++image;
    }
  }
}

// ---- one_hot ----

struct OneHotArguments {
  uint64_t from;
  uint64_t to;
  uint64_t indices;
  uint32_t depth;
};

// kStoreValues values from `column` of a row on; rows follow each other without a gap.
template <typename From, typename To>
PENSTOCK_HOST_DEVICE void OneHotItem(const OneHotArguments& arguments, uint64_t row,
                                     uint32_t column) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const auto* indices = reinterpret_cast<const From*>(arguments.from);
  auto* to = reinterpret_cast<To*>(arguments.to) + row * arguments.depth + column;
  auto index = static_cast<int64_t>(indices[row]);
  Pack<To, kValues> made = {};
  uint32_t count = kValues;
  if (arguments.depth - column >= kValues) {
    // An index below the column wraps far above.
    const uint64_t distance = static_cast<uint64_t>(index) - column;
    const uint32_t hit = distance < kValues ? static_cast<uint32_t>(distance) : kValues;
    for (uint32_t i = 0; i < kValues; ++i) made.values[i] = Truth<To>::Of(i == hit);
  } else {
    for (uint32_t i = 0; i < kValues; ++i) {
      if (i >= count) continue;
      made.values[i] = Truth<To>::Of(index == int64_t{column});
      if (++column < arguments.depth) continue;
      column = 0;
      if (++row < arguments.indices) {
        index = static_cast<int64_t>(indices[row]);
      } else {
        count = i + 1;
      }
    }
  }
  StorePack(made, count, to);
}

// As NormalizeThread().
template <typename From, typename To>
PENSTOCK_HOST_DEVICE void OneHotThread(const OneHotArguments& arguments, uint32_t thread,
                                       uint32_t threads) {
  const uint64_t first = uint64_t{thread} * kStoreValues<To>;
  const uint64_t step = uint64_t{threads} * kStoreValues<To>;
  const uint64_t step_rows = step / arguments.depth;
  const auto step_columns = static_cast<uint32_t>(step % arguments.depth);
  uint64_t row = first / arguments.depth;
  auto column = static_cast<uint32_t>(first % arguments.depth);
  while (row < arguments.indices) {
    OneHotItem<From, To>(arguments, row, column);
    row += step_rows;
    column += step_columns;
    if (column >= arguments.depth) {
      column -= arguments.depth;
      ++row;
    }
  }
}

// ---- unpack_bits ----

struct UnpackBitsArguments {
  uint64_t from;
  uint64_t to;
  uint64_t bytes;
};

template <typename To>
PENSTOCK_HOST_DEVICE void UnpackBitsItem(const UnpackBitsArguments& arguments, uint64_t item) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint64_t first = item * kValues;
  const uint64_t left = arguments.bytes * 8 - first;
  const uint32_t count = left < kValues ? static_cast<uint32_t>(left) : kValues;
  const auto* from = reinterpret_cast<const uint8_t*>(arguments.from) + first / 8;
  // The bits from the first one on, in the highest places.
  uint32_t bits = uint32_t{from[0]} << 24;
  if (kValues > 8 && count > 8) bits |= uint32_t{from[1]} << 16;
  bits <<= first % 8;
  Pack<To, kValues> made;
  for (uint32_t i = 0; i < kValues; ++i) {
    made.values[i] = Truth<To>::Of((bits >> (31 - i) & 1) != 0);
  }
  StorePack(made, count, reinterpret_cast<To*>(arguments.to) + first);
}

// As NormalizeThread().
template <typename To>
PENSTOCK_HOST_DEVICE void UnpackBitsThread(const UnpackBitsArguments& arguments, uint32_t thread,
                                           uint32_t threads) {
  const uint64_t items = (arguments.bytes * 8 + kStoreValues<To> - 1) / kStoreValues<To>;
  for (uint64_t item = thread; item < items; item += threads) UnpackBitsItem<To>(arguments, item);
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
