// The kernels: which item of expand_body.h a thread of the grid is. Their names are those of expansion.cc.
#include "cuda/expand_body.h"

namespace {

using namespace penstock::cuda;

// Rows beyond the grid's height are a thread's next ones.
__device__ uint32_t Item() { return blockIdx.x * blockDim.x + threadIdx.x; }

}  // namespace

#define PENSTOCK_NORMALIZE_KERNEL(name, type)                                                   \
  extern "C" __global__ void penstock_normalize_##name(NormalizeArguments arguments) {          \
    __shared__ type table[kMaxNormalized];                                                      \
    for (uint32_t i = threadIdx.x; i < NumNormalized(arguments); i += blockDim.x) {             \
      table[i] = Normalized<type>(arguments, i);                                                \
    }                                                                                           \
    __syncthreads();                                                                            \
    for (uint64_t image = blockIdx.y; image < arguments.images; image += gridDim.y) {           \
      NormalizeItem<type>(arguments, table, image, Item());                                     \
    }                                                                                           \
  }
PENSTOCK_EXPANSION_FLOATS(PENSTOCK_NORMALIZE_KERNEL)

#define PENSTOCK_ONE_HOT_KERNEL(from_name, from, name, type)                                   \
  extern "C" __global__ void penstock_one_hot_##from_name##_##name(OneHotArguments arguments) { \
    for (uint64_t row = blockIdx.y; row < arguments.indices; row += gridDim.y) {               \
      OneHotItem<from, type>(arguments, row, Item());                                          \
    }                                                                                          \
  }
#define PENSTOCK_ONE_HOT_UINT8(name, type) PENSTOCK_ONE_HOT_KERNEL(uint8, uint8_t, name, type)
#define PENSTOCK_ONE_HOT_INT32(name, type) PENSTOCK_ONE_HOT_KERNEL(int32, int32_t, name, type)
#define PENSTOCK_ONE_HOT_INT64(name, type) PENSTOCK_ONE_HOT_KERNEL(int64, int64_t, name, type)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_UINT8)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_INT32)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_INT64)

#define PENSTOCK_UNPACK_BITS_KERNEL(name, type)                                                \
  extern "C" __global__ void penstock_unpack_bits_##name(UnpackBitsArguments arguments) {      \
    const uint64_t step = static_cast<uint64_t>(gridDim.x) * blockDim.x;                       \
    for (uint64_t byte = static_cast<uint64_t>(blockIdx.x) * blockDim.x + threadIdx.x;         \
         byte < arguments.bytes; byte += step) {                                               \
      UnpackBitsItem<type>(arguments, byte);                                                   \
    }                                                                                          \
  }
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_UNPACK_BITS_KERNEL)
