#include "server/kernels/gather.h"

#include <algorithm>
#include <cstring>

// Before highway's own headers.
#include "server/kernels/targets.h"

#include "hwy/highway.h"
#include "server/kernels/pixel_planes.h"

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
}  // namespace penstock::kernels

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Four rows of four words.
HWY_INLINE void TransposeFour(const uint8_t* in, size_t in_bytes, uint8_t* out, size_t out_bytes) {
  const hn::FixedTag<uint32_t, 4> d;
  const hn::Repartition<uint64_t, decltype(d)> wide;
  const auto load = [&](size_t row) {
    return hn::BitCast(d, hn::LoadU(hn::FixedTag<uint8_t, 16>(), in + row * in_bytes));
  };
  const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, r2, r3));
  const auto store = [&](size_t row, hn::Vec<decltype(wide)> words) {
    const hn::FixedTag<uint8_t, 16> bytes;
    hn::StoreU(hn::BitCast(bytes, words), bytes, out + row * out_bytes);
  };
  store(0, hn::InterleaveLower(wide, low01, low23));
  store(1, hn::InterleaveUpper(wide, low01, low23));
  store(2, hn::InterleaveLower(wide, high01, high23));
  store(3, hn::InterleaveUpper(wide, high01, high23));
}

void TransposeWords(const uint8_t* in, size_t rows, size_t columns, uint8_t* out) {
  ForEachBlock(16, rows, columns, [&](size_t top, size_t bottom, size_t left, size_t right) {
    const size_t down = top + (bottom - top) / 4 * 4, across = left + (right - left) / 4 * 4;
    for (size_t c = left; c < across; c += 4) {
      for (size_t r = top; r < down; r += 4) {
        TransposeFour(in + (r * columns + c) * 4, columns * 4, out + (c * rows + r) * 4, rows * 4);
      }
    }
    TransposePart<uint32_t>(in, rows, columns, down, bottom, left, right, out);
    TransposePart<uint32_t>(in, rows, columns, top, down, across, right, out);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

namespace penstock::kernels {

void Transpose(const uint8_t* in, size_t rows, size_t columns, size_t element_bytes, uint8_t* out) {
  if (element_bytes == 1 && columns == 3) return SplitThreePlanes(in, rows, out);
  switch (element_bytes) {
    case 1:
      return TransposeBlocks<uint8_t>(in, rows, columns, out);
    case 2:
      return TransposeBlocks<uint16_t>(in, rows, columns, out);
    case 4:
      return HWY_NAMESPACE::TransposeWords(in, rows, columns, out);
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
