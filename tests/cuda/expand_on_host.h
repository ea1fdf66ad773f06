// The kernels of cuda/expand.cu as functions of the host, over the same bodies: each thread of a grid in turn.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cuda/expand_body.h"

namespace penstock::cuda {

// What a launch says of its threads.
struct Grid {
  uint32_t blocks = 0;
  uint32_t block = 0;  // threads of one
};

struct HostKernel {
  std::string_view name;
  size_t argument_bytes;
  void (*run)(const void* arguments, const Grid& grid);
};

// Each item of `items`, in the order in which the threads of a grid would take them.
template <typename Make>
void ForItems(const Grid& grid, uint64_t items, Make make) {
  const uint64_t threads = uint64_t{grid.blocks} * grid.block;
  for (uint64_t first = 0; first < threads; ++first) {
    for (uint64_t item = first; item < items; item += threads) make(item);
  }
}

template <typename To>
void NormalizeOnHost(const void* bytes, const Grid& grid) {
  NormalizeArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  const uint32_t items = NormalizeItems<To>(arguments);
  const auto* table = reinterpret_cast<const To*>(arguments.table);
  ForItems(grid, arguments.images * items, [&](uint64_t item) {
    NormalizeItem<To>(arguments, table, item / items, static_cast<uint32_t>(item % items));
  });
}

template <typename From, typename To>
void OneHotOnHost(const void* bytes, const Grid& grid) {
  OneHotArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  ForItems(grid, OneHotItems<To>(arguments), [&](uint64_t item) {
    const uint64_t first = item * kStoreValues<To>;
    OneHotItem<From, To>(arguments, first / arguments.depth,
                         static_cast<uint32_t>(first % arguments.depth));
  });
}

template <typename To>
void UnpackBitsOnHost(const void* bytes, const Grid& grid) {
  UnpackBitsArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  ForItems(grid, UnpackBitsItems<To>(arguments),
           [&](uint64_t item) { UnpackBitsItem<To>(arguments, item); });
}

inline const HostKernel* FindHostKernel(std::string_view name) {
  static const std::vector<HostKernel> kernels = {
#define NORMALIZE(name, type) \
  {"penstock_normalize_" #name, sizeof(NormalizeArguments), &NormalizeOnHost<type>},
      PENSTOCK_EXPANSION_FLOATS(NORMALIZE)
#undef NORMALIZE
#define ONE_HOT(name, type)                                                                     \
  {"penstock_one_hot_uint8_" #name, sizeof(OneHotArguments), &OneHotOnHost<uint8_t, type>},     \
      {"penstock_one_hot_int32_" #name, sizeof(OneHotArguments), &OneHotOnHost<int32_t, type>}, \
      {"penstock_one_hot_int64_" #name, sizeof(OneHotArguments), &OneHotOnHost<int64_t, type>},
          PENSTOCK_EXPANSION_DTYPES(ONE_HOT)
#undef ONE_HOT
#define UNPACK(name, type) \
  {"penstock_unpack_bits_" #name, sizeof(UnpackBitsArguments), &UnpackBitsOnHost<type>},
              PENSTOCK_EXPANSION_DTYPES(UNPACK)
#undef UNPACK
  };
  for (const HostKernel& kernel : kernels) {
    if (kernel.name == name) return &kernel;
  }
  return nullptr;
}

}  // namespace penstock::cuda
