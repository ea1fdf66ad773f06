#include "server/kernels/gather.h"

#include <algorithm>
#include <cstring>

#include "server/kernels/pixel_planes.h"
#include "server/kernels/transpose_words.h"

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

// The part of a matrix from row `top` and column `left` on.
template <typename T>
void TransposePart(const uint8_t* in, size_t rows, size_t columns, size_t top, size_t bottom,
                   size_t left, size_t right, uint8_t* out) {
  for (size_t c = left; c < right; ++c) {
    for (size_t r = top; r < bottom; ++r) {
      std::memcpy(out + (c * rows + r) * sizeof(T), in + (r * columns + c) * sizeof(T), sizeof(T));
    }
  }
}

// Square blocks, so that what is read and what is written stays in L1 until it is used up.
template <typename Block>
void ForEachBlock(size_t side, size_t rows, size_t columns, const Block& block) {
  for (size_t top = 0; top < rows; top += side) {
    for (size_t left = 0; left < columns; left += side) {
      block(top, std::min(top + side, rows), left, std::min(left + side, columns));
    }
  }
}

template <typename T>
void TransposeBlocks(const uint8_t* in, size_t rows, size_t columns, uint8_t* out) {
  ForEachBlock(64 / sizeof(T), rows, columns,
               [&](size_t top, size_t bottom, size_t left, size_t right) {
                 TransposePart<T>(in, rows, columns, top, bottom, left, right, out);
               });
}

}  // namespace

void Transpose(const uint8_t* in, size_t rows, size_t columns, size_t element_bytes, uint8_t* out) {
  if (element_bytes == 1 && columns == 3) return SplitThreePlanes(in, rows, out);
  switch (element_bytes) {
    case 1:
      return TransposeBlocks<uint8_t>(in, rows, columns, out);
    case 2:
      return TransposeBlocks<uint16_t>(in, rows, columns, out);
    case 4:
      return TransposeWords(in, rows, columns, out);
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
