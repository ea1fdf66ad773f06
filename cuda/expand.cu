// The kernels: expand_body.h's functions for each thread of a grid. Their names are those of
// expansion.cc.
#include "cuda/expand_body.h"

namespace {

using namespace penstock::cuda;

__device__ uint32_t Thread() { return blockIdx.x * kBlock + threadIdx.x; }
__device__ uint32_t Threads() { return gridDim.x * kBlock; }

template <typename To>
__device__ void Normalize(const NormalizeArguments& arguments) {
  __shared__ __align__(16) To table[kMaxTable];
  using Part = Pack<uint32_t, 4>;
  const uint32_t parts = arguments.tables * kTableValues * sizeof(To) / sizeof(Part);
  for (uint32_t i = threadIdx.x; i < parts; i += kBlock) {
    reinterpret_cast<Part*>(table)[i] = reinterpret_cast<const Part*>(arguments.table)[i];
  }
  __syncthreads();
  NormalizeThread<To>(arguments, table, Thread(), Threads());
}

}  // namespace

#define PENSTOCK_NORMALIZE_KERNEL(name, type) \
  extern "C" __global__ void __launch_bounds__(kBlock) \
      penstock_normalize_##name(const NormalizeArguments arguments) { \
    Normalize<type>(arguments); \
  }
PENSTOCK_EXPANSION_FLOATS(PENSTOCK_NORMALIZE_KERNEL)

#define PENSTOCK_ONE_HOT_KERNEL(from_name, from, name, type) \
  extern "C" __global__ void __launch_bounds__(kBlock) \
      penstock_one_hot_##from_name##_##name(const OneHotArguments arguments) { \
    OneHotThread<from, type>(arguments, Thread(), Threads()); \
  }
#define PENSTOCK_ONE_HOT_UINT8(name, type) PENSTOCK_ONE_HOT_KERNEL(uint8, uint8_t, name, type)
#define PENSTOCK_ONE_HOT_INT32(name, type) PENSTOCK_ONE_HOT_KERNEL(int32, int32_t, name, type)
#define PENSTOCK_ONE_HOT_INT64(name, type) PENSTOCK_ONE_HOT_KERNEL(int64, int64_t, name, type)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_UINT8)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_INT32)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_INT64)

#define PENSTOCK_UNPACK_BITS_KERNEL(name, type) \
  extern "C" __global__ void __launch_bounds__(kBlock) \
      penstock_unpack_bits_##name(const UnpackBitsArguments arguments) { \
    UnpackBitsThread<type>(arguments, Thread(), Threads()); \
  }
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_UNPACK_BITS_KERNEL)
