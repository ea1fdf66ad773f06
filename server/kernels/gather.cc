#include "server/kernels/gather.h"

#include <algorithm>
#include <cstring>

// Before highway's own headers.
#include "server/kernels/targets.h"

#include "hwy/highway.h"

namespace penstock::kernels {
namespace {

// Plain loads and stores: hardware gathers are no faster on rows that lie in L1.
template <typename T>
void GatherOf(const uint8_t* in, const int32_t* index, size_t elements, uint8_t* out) {
  for (size_t i = 0; i < elements; ++i) {
    T value;
    std::memcpy(&value, in + static_cast<size_t>(index[i]) * sizeof(T), sizeof(T));
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

// Square blocks, so that what is read and what is written stays in L1 until it is used up.
template <typename T>
void TransposeBlocks(const uint8_t* in, size_t rows, size_t columns, uint8_t* out) {
  constexpr size_t kSide = 64 / sizeof(T);
  for (size_t top = 0; top < rows; top += kSide) {
    const size_t bottom = std::min(top + kSide, rows);
    for (size_t left = 0; left < columns; left += kSide) {
      const size_t right = std::min(left + kSide, columns);
      for (size_t c = left; c < right; ++c) {
        for (size_t r = top; r < bottom; ++r) {
          T value;
          std::memcpy(&value, in + (r * columns + c) * sizeof(T), sizeof(T));
          std::memcpy(out + (c * rows + r) * sizeof(T), &value, sizeof(T));
        }
      }
    }
  }
}

}  // namespace
}  // namespace penstock::kernels

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Pixels of three bytes to three planes; gives back how many were done, whole vectors of them.
size_t SplitThree(const uint8_t* HWY_RESTRICT in, size_t pixels, uint8_t* HWY_RESTRICT out) {
  const hn::FixedTag<uint8_t, 16> d;
  size_t i = 0;
  for (; i + 16 <= pixels; i += 16) {
    hn::Vec<decltype(d)> first, second, third;
    hn::LoadInterleaved3(d, in + 3 * i, first, second, third);
    hn::StoreU(first, d, out + i);
    hn::StoreU(second, d, out + pixels + i);
    hn::StoreU(third, d, out + 2 * pixels + i);
  }
  return i;
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

namespace penstock::kernels {

void Transpose(const uint8_t* in, size_t rows, size_t columns, size_t element_bytes, uint8_t* out) {
  if (element_bytes == 1 && columns == 3) {
    for (size_t i = HWY_NAMESPACE::SplitThree(in, rows, out); i < rows; ++i) {
      for (size_t c = 0; c < 3; ++c) out[c * rows + i] = in[3 * i + c];
    }
    return;
  }
  switch (element_bytes) {
    case 1:
      return TransposeBlocks<uint8_t>(in, rows, columns, out);
    case 2:
      return TransposeBlocks<uint16_t>(in, rows, columns, out);
    case 4:
      return TransposeBlocks<uint32_t>(in, rows, columns, out);
    default:
      return TransposeBlocks<uint64_t>(in, rows, columns, out);
  }
}

void Gather(const uint8_t* in, const int32_t* index, size_t elements, size_t element_bytes,
            uint8_t* out) {
  switch (element_bytes) {
    case 1:
      return GatherOf<uint8_t>(in, index, elements, out);
    case 2:
      return GatherOf<uint16_t>(in, index, elements, out);
    case 4:
      return GatherOf<uint32_t>(in, index, elements, out);
    default:
      return GatherOf<uint64_t>(in, index, elements, out);
  }
}

void GatherRuns(const uint8_t* in, const int32_t* start, size_t runs, size_t run_bytes,
                size_t element_bytes, uint8_t* out) {
  for (size_t i = 0; i < runs; ++i) {
    std::memcpy(out, in + static_cast<size_t>(start[i]) * element_bytes, run_bytes);
    out += run_bytes;
  }
}

}  // namespace penstock::kernels
