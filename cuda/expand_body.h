// What the device computes, as plain functions: nvcc compiles them into kernels (expand.cu), and
// any compiler into functions of the host, with which tests compare the same bytes with the CPU's.
//
// A work item makes the values of one store of 16 bytes (of an image whose three or four channels
// go first, one store for each channel where stores divide a plane). Narrower stores,
// or strides between those of neighbouring threads, would touch lines of memory more than once; and
// a path that loads all that it needs before it looks at any of it waits for memory once. What does
// not lie as that needs takes the other path, value by value.
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

// How many items an image has that does not take NormalizePlanes().
template <typename To>
PENSTOCK_HOST_DEVICE uint32_t NormalizeItems(const NormalizeArguments& arguments) {
  const uint32_t values =
      arguments.pixels * (arguments.channels_first != 0 ? 1 : arguments.channels);
  return (values + kStoreValues<To> - 1) / kStoreValues<To>;
}

// Of the following functions `first` is the first of the kStoreValues values, or pixels, that they
// make, `from` is read from there on, and `to` written. `own` is the distance of the channels'
// tables. kChannels: how many there are, 0 where the compiler is not to know.

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

// Channels first, of kChannels, where kStoreValues divides a plane.
template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizePixels(const NormalizeArguments& arguments, const To* table,
                                          uint32_t first, const uint8_t* from, To* to) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint32_t own = arguments.tables > 1 ? kTableValues : 0;
  if (IsAligned<uint8_t, kValues>(from) && IsAligned<To, kValues>(to)) {
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
  for (uint32_t channel = 0; channel < kChannels; ++channel) {
    for (uint32_t i = 0; i < kValues; ++i) {
      to[uint64_t{channel} * arguments.pixels + i] =
          table[channel * own + from[i * kChannels + channel]];
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
                            : NormalizePixels<To, 4>(arguments, table, first, from, to);
  } else {
    from += first;
    arguments.channels == 3 ? NormalizeValues<To, 3>(arguments, table, first, from, to)
                            : NormalizeValues<To, 0>(arguments, table, first, from, to);
  }
}

// kValues bytes from `from` on, kChannels apart (0: `channels`), all within [begin, end).
template <uint32_t kValues, uint32_t kChannels>
PENSTOCK_HOST_DEVICE Pack<uint8_t, kValues> ReadApart(const uint8_t* from, uint32_t channels,
                                                      const uint8_t* begin, const uint8_t* end) {
  Pack<uint8_t, kValues> read;
  if constexpr (kChannels != 0) {
    // By the words that hold them: a byte at a time, neighbouring threads would ask for each line
    // of memory many times.
    constexpr uint32_t kSpan = (kValues - 1) * kChannels + 1;
    constexpr uint32_t kWords = (kSpan + 2 * (sizeof(uint64_t) - 1)) / sizeof(uint64_t);
    const uint32_t skipped = reinterpret_cast<uintptr_t>(from) % sizeof(uint64_t);
    const uint8_t* at = from - skipped;
    if (at >= begin && at + kWords * sizeof(uint64_t) <= end) {
      uint64_t words[kWords];
      for (uint32_t i = 0; i < kWords; ++i) words[i] = reinterpret_cast<const uint64_t*>(at)[i];
      // Little-endian, as devices are.
      for (uint32_t i = 0; i + 1 < kWords; ++i) {
        words[i] = words[i] >> skipped * 8 | words[i + 1] << 1 << (63 - skipped * 8);
      }
      words[kWords - 1] >>= skipped * 8;
      for (uint32_t i = 0; i < kValues; ++i) {
        const uint32_t byte = i * kChannels;
        read.values[i] = static_cast<uint8_t>(words[byte / 8] >> byte % 8 * 8);
      }
      return read;
    }
    channels = kChannels;
  }
  for (uint32_t i = 0; i < kValues; ++i) read.values[i] = from[i * channels];
  return read;
}

// Channels first, of any size: kStoreValues values from `pixel` of a plane on, where planes of all
// images follow each other without a gap.
template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizePlaneItem(const NormalizeArguments& arguments, const To* table,
                                             uint64_t image, uint32_t channel, uint32_t pixel) {
  constexpr uint32_t kValues = kStoreValues<To>;
  const uint32_t channels = kChannels != 0 ? kChannels : arguments.channels;
  const uint32_t own = arguments.tables > 1 ? kTableValues : 0;
  const uint64_t planes = arguments.images * channels;
  const uint64_t plane = image * channels + channel;
  const auto* begin = reinterpret_cast<const uint8_t*>(arguments.from);
  const uint8_t* from = begin + (image * arguments.pixels + pixel) * channels + channel;
  Pack<To, kValues> made = {};
  uint32_t count = kValues;
  if (arguments.pixels - pixel >= kValues) {
    const auto read =
        ReadApart<kValues, kChannels>(from, channels, begin, begin + planes * arguments.pixels);
    for (uint32_t i = 0; i < kValues; ++i) made.values[i] = table[channel * own + read.values[i]];
  } else {
    uint64_t left = planes - plane;
    uint32_t column = pixel;
    for (uint32_t i = 0; i < kValues; ++i) {
      if (i >= count) continue;
      made.values[i] = table[channel * own + *from];
      from += channels;
      if (++column < arguments.pixels) continue;
      column = 0;
      if (--left == 0) count = i + 1;
      // Back to the image's begin for its next channel, or to the next image's first.
      if (++channel < channels) {
        from -= uint64_t{arguments.pixels} * channels - 1;
      } else {
        channel = 0;
        from -= channels - 1;
      }
    }
  }
  StorePack(made, count, reinterpret_cast<To*>(arguments.to) + plane * arguments.pixels + pixel);
}

// The items of thread number `thread` of `threads`: a grid's width apart, so that neighbours lie
// side by side in memory. What an item's place in its row is takes a division at the first one, and
// an addition at each of the next.

// Calls item(row, column) for those of rows of `columns` values that follow each other without a
// gap.
template <uint32_t kValues, typename Item>
PENSTOCK_HOST_DEVICE void ForStores(uint64_t rows, uint32_t columns, uint32_t thread,
                                    uint32_t threads, Item item) {
  const uint64_t first = uint64_t{thread} * kValues;
  const uint64_t step = uint64_t{threads} * kValues;
  const uint64_t step_rows = step / columns;
  const auto step_columns = static_cast<uint32_t>(step % columns);
  uint64_t row = first / columns;
  auto column = static_cast<uint32_t>(first % columns);
  while (row < rows) {
    item(row, column);
    row += step_rows;
    column += step_columns;
    if (column >= columns) {
      column -= columns;
      ++row;
    }
  }
}

template <typename To, uint32_t kChannels>
PENSTOCK_HOST_DEVICE void NormalizePlanes(const NormalizeArguments& arguments, const To* table,
                                          uint32_t thread, uint32_t threads) {
  const uint32_t channels = kChannels != 0 ? kChannels : arguments.channels;
  uint64_t last = 0, image = 0;
  uint32_t channel = 0;
  ForStores<kStoreValues<To>>(arguments.images * channels, arguments.pixels, thread, threads,
                              [&](uint64_t plane, uint32_t pixel) {
                                // Planes since the last item are few: 32 bits, which divide several
                                // times as fast as 64.
                                channel += static_cast<uint32_t>(plane - last);
                                image += channel / channels;
                                channel %= channels;
                                last = plane;
                                NormalizePlaneItem<To, kChannels>(arguments, table, image, channel,
                                                                  pixel);
                              });
}

template <typename To>
PENSTOCK_HOST_DEVICE void NormalizeThread(const NormalizeArguments& arguments, const To* table,
                                          uint32_t thread, uint32_t threads) {
  if (arguments.channels_first != 0) {
    const bool divided = arguments.pixels % kStoreValues<To> == 0;
    switch (arguments.channels) {
      case 3:
        if (!divided) return NormalizePlanes<To, 3>(arguments, table, thread, threads);
        break;
      case 4:
        if (!divided) return NormalizePlanes<To, 4>(arguments, table, thread, threads);
        break;
      default:
        return NormalizePlanes<To, 0>(arguments, table, thread, threads);
    }
  }
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

template <typename From, typename To>
PENSTOCK_HOST_DEVICE void OneHotThread(const OneHotArguments& arguments, uint32_t thread,
                                       uint32_t threads) {
  ForStores<kStoreValues<To>>(
      arguments.indices, arguments.depth, thread, threads,
      [&](uint64_t row, uint32_t column) { OneHotItem<From, To>(arguments, row, column); });
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
