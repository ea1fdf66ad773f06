// The kernels of cuda/expand.cu as functions of the host, over the same bodies: each thread of a
// grid in turn.
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

template <typename Run>
void ForThreads(const Grid& grid, Run run) {
  const uint32_t threads = grid.blocks * grid.block;
  for (uint32_t thread = 0; thread < threads; ++thread) run(thread, threads);
}

template <typename To>
void NormalizeOnHost(const void* bytes, const Grid& grid) {
  NormalizeArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  const auto* table = reinterpret_cast<const To*>(arguments.table);
  ForThreads(grid, [&](uint32_t thread, uint32_t threads) {
    NormalizeThread<To>(arguments, table, thread, threads);
  });
}

template <typename From, typename To>
void OneHotOnHost(const void* bytes, const Grid& grid) {
  OneHotArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  ForThreads(grid, [&](uint32_t thread, uint32_t threads) {
    OneHotThread<From, To>(arguments, thread, threads);
  });
}

template <typename To>
void UnpackBitsOnHost(const void* bytes, const Grid& grid) {
  UnpackBitsArguments arguments;
  std::memcpy(&arguments, bytes, sizeof arguments);
  ForThreads(grid, [&](uint32_t thread, uint32_t threads) {
    UnpackBitsThread<To>(arguments, thread, threads);
  });
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
