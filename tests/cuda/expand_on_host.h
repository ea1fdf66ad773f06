// The kernels of cuda/expand.cu as functions of the host, over the same bodies: each thread of a grid in turn.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cuda/expand_body.h"

namespace penstock::cuda {

struct Grid {
  uint32_t width = 0;   // blocks
  uint32_t height = 0;  // blocks
  uint32_t block = 0;   // threads of a block
};

struct HostKernel {
  std::string_view name;
  size_t argument_bytes;
  void (*run)(const void* arguments, const Grid& grid);
};

template <typename To>
void NormalizeOnHost(const void* bytes, const Grid& grid) {
  NormalizeArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  std::vector<To> table(NumNormalized(arguments));
  for (uint32_t i = 0; i < table.size(); ++i) table[i] = Normalized<To>(arguments, i);
  const uint32_t items = NormalizeItems<To>(arguments);
  const uint64_t step = uint64_t{grid.width} * grid.block;
  for (uint64_t first = 0; first < step; ++first) {
    for (uint64_t next = first; next < arguments.images * items; next += step) {
      NormalizeItem<To>(arguments, table.data(), next / items, static_cast<uint32_t>(next % items));
    }
  }
}

template <typename From, typename To>
void OneHotOnHost(const void* bytes, const Grid& grid) {
  OneHotArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  for (uint32_t first = 0; first < grid.height; ++first) {
    for (uint32_t item = 0; item < grid.width * grid.block; ++item) {
      for (uint64_t row = first; row < arguments.indices; row += grid.height) {
        OneHotItem<From, To>(arguments, row, item);
      }
    }
  }
}

template <typename To>
void UnpackBitsOnHost(const void* bytes, const Grid& grid) {
  UnpackBitsArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  const uint64_t step = uint64_t{grid.width} * grid.block;
  for (uint64_t first = 0; first < step; ++first) {
    for (uint64_t item = first; item < UnpackBitsItems<To>(arguments); item += step) {
      UnpackBitsItem<To>(arguments, item);
    }
  }
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
