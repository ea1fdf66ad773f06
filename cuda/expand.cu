// The kernels: which item of expand_body.h a thread of the grid is. Their names are those of expansion.cc.
#include "cuda/expand_body.h"

namespace {

using namespace penstock::cuda;

// Rows beyond the grid's height, and what lies beyond its width where a grid strides, are a thread's next ones.
__device__ uint32_t Item() { return blockIdx.x * blockDim.x + threadIdx.x; }

// Items of all images, a grid's width apart, with one division for all of them.
template <typename To>
__device__ void Normalize(const NormalizeArguments& arguments, const To* table) {
  const uint32_t items = NormalizeItems<To>(arguments);
  const uint32_t stride = gridDim.x * blockDim.x;
  const uint32_t step_images = stride / items;
  const uint32_t step_items = stride % items;
  uint64_t image = Item() / items;
  uint32_t item = Item() % items;
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

}  // namespace

#define PENSTOCK_NORMALIZE_KERNEL(name, type)                                                   \
  extern "C" __global__ void __launch_bounds__(256)                                             \
      penstock_normalize_##name(NormalizeArguments arguments) {                                 \
    __shared__ type table[kMaxNormalized];                                                      \
    for (uint32_t i = threadIdx.x; i < NumNormalized(arguments); i += blockDim.x) {             \
      table[i] = Normalized<type>(arguments, i);                                                \
    }                                                                                           \
    __syncthreads();                                                                            \
    Normalize<type>(arguments, table);                                                          \
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
    const uint64_t items = UnpackBitsItems<type>(arguments);                                   \
    for (uint64_t item = Item(); item < items; item += step) {                                 \
      UnpackBitsItem<type>(arguments, item);                                                   \
    }                                                                                          \
  }
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_UNPACK_BITS_KERNEL)
