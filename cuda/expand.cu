// The kernels: which items of expand_body.h a thread of the grid makes. Their names are those of expansion.cc.
#include "cuda/expand_body.h"

namespace {

using namespace penstock::cuda;

constexpr uint32_t kBlock = 256;

__device__ uint32_t Thread() { return blockIdx.x * kBlock + threadIdx.x; }
__device__ uint32_t Threads() { return gridDim.x * kBlock; }

// Threads go over the items a grid's width apart, so that neighbours lie side by side in memory. What an item's place in its row is takes a
// division at the first one, and an addition at each of the next.

template <typename To>
__device__ void Normalize(const NormalizeArguments& arguments) {
  __shared__ __align__(16) To table[kMaxTable];
  using Part = Pack<uint32_t, 4>;
  const uint32_t parts = arguments.tables * kTableValues * sizeof(To) / sizeof(Part);
  for (uint32_t i = threadIdx.x; i < parts; i += kBlock) {
    reinterpret_cast<Part*>(table)[i] = reinterpret_cast<const Part*>(arguments.table)[i];
  }
  __syncthreads();
  const uint32_t items = NormalizeItems<To>(arguments);
  const uint32_t step_images = Threads() / items;
  const uint32_t step_items = Threads() % items;
  uint64_t image = Thread() / items;
  uint32_t item = Thread() % items;
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

template <typename From, typename To>
__device__ void OneHot(const OneHotArguments& arguments) {
  const uint64_t first = uint64_t{Thread()} * kStoreValues<To>;
  const uint64_t step = uint64_t{Threads()} * kStoreValues<To>;
  const uint64_t step_rows = step / arguments.depth;
  const uint32_t step_columns = static_cast<uint32_t>(step % arguments.depth);
  uint64_t row = first / arguments.depth;
  uint32_t column = static_cast<uint32_t>(first % arguments.depth);
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

template <typename To>
__device__ void UnpackBits(const UnpackBitsArguments& arguments) {
  const uint64_t items = UnpackBitsItems<To>(arguments);
  for (uint64_t item = Thread(); item < items; item += Threads()) {
    UnpackBitsItem<To>(arguments, item);
  }
}

}  // namespace

#define PENSTOCK_NORMALIZE_KERNEL(name, type)                        \
  extern "C" __global__ void __launch_bounds__(kBlock)               \
      penstock_normalize_##name(const NormalizeArguments arguments) { \
    Normalize<type>(arguments);                                      \
  }
PENSTOCK_EXPANSION_FLOATS(PENSTOCK_NORMALIZE_KERNEL)

#define PENSTOCK_ONE_HOT_KERNEL(from_name, from, name, type)                       \
  extern "C" __global__ void __launch_bounds__(kBlock)                             \
      penstock_one_hot_##from_name##_##name(const OneHotArguments arguments) {     \
    OneHot<from, type>(arguments);                                                 \
  }
#define PENSTOCK_ONE_HOT_UINT8(name, type) PENSTOCK_ONE_HOT_KERNEL(uint8, uint8_t, name, type)
#define PENSTOCK_ONE_HOT_INT32(name, type) PENSTOCK_ONE_HOT_KERNEL(int32, int32_t, name, type)
#define PENSTOCK_ONE_HOT_INT64(name, type) PENSTOCK_ONE_HOT_KERNEL(int64, int64_t, name, type)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_UINT8)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_INT32)
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_ONE_HOT_INT64)

#define PENSTOCK_UNPACK_BITS_KERNEL(name, type)                          \
  extern "C" __global__ void __launch_bounds__(kBlock)                   \
      penstock_unpack_bits_##name(const UnpackBitsArguments arguments) { \
    UnpackBits<type>(arguments);                                         \
  }
PENSTOCK_EXPANSION_DTYPES(PENSTOCK_UNPACK_BITS_KERNEL)
