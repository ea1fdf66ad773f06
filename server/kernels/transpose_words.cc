#include "server/kernels/transpose_words.h"

#include <algorithm>
#include <cstring>

#include "server/kernels/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/transpose_words.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Eight words a vector, or four.
constexpr size_t kSide = HWY_MAX_BYTES >= 32 ? 8 : 4;
using Words = hn::FixedTag<uint32_t, kSide>;
using Pairs = hn::Repartition<uint64_t, Words>;
using Bytes = hn::Repartition<uint8_t, Words>;

// Four rows from `row` on: vector k has column k of its first four words, and column k + 4 of its
// last.
HWY_INLINE void ColumnsOfFour(const uint8_t* in, size_t in_bytes, hn::Vec<Words>* columns) {
  const Words d;
  const Pairs pairs;
  const auto load = [&](size_t row) HWY_ATTR {
    return hn::BitCast(d, hn::LoadU(Bytes(), in + row * in_bytes));
  };
  const auto r0 = load(0), r1 = load(1), r2 = load(2), r3 = load(3);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, r0, r1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, r2, r3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, r0, r1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, r2, r3));
  columns[0] = hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23));
  columns[1] = hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23));
  columns[2] = hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23));
  columns[3] = hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23));
}

HWY_INLINE void TransposeSquare(const uint8_t* in, size_t in_bytes, uint8_t* out,
                                size_t out_bytes) {
  const Words d;
  const auto store = [&](size_t row, hn::Vec<Words> words) HWY_ATTR {
    hn::StoreU(hn::BitCast(Bytes(), words), Bytes(), out + row * out_bytes);
  };
  hn::Vec<Words> upper[4];
  ColumnsOfFour(in, in_bytes, upper);
#if HWY_MAX_BYTES >= 32
  hn::Vec<Words> lower[4];
  ColumnsOfFour(in + 4 * in_bytes, in_bytes, lower);
  for (size_t k = 0; k < 4; ++k) {
    store(k, hn::ConcatLowerLower(d, lower[k], upper[k]));
    store(k + 4, hn::ConcatUpperUpper(d, lower[k], upper[k]));
  }
#else
  (void)d;
  for (size_t k = 0; k < 4; ++k) store(k, upper[k]);
#endif
}

// The part of the matrix in these rows and columns, word by word.
void TransposeRest(const uint8_t* in, size_t rows, size_t columns, size_t top, size_t bottom,
                   size_t left, size_t right, uint8_t* out) {
  for (size_t c = left; c < right; ++c) {
    for (size_t r = top; r < bottom; ++r) {
      std::memcpy(out + (c * rows + r) * 4, in + (r * columns + c) * 4, 4);
    }
  }
}

void Transpose(const uint8_t* HWY_RESTRICT in, size_t rows, size_t columns,
               uint8_t* HWY_RESTRICT out) {
  // Blocks of a cache line's words, so that what is read and what is written stays in L1 until it
  // is used up.
  constexpr size_t kBlock = 16;
  const size_t down = rows / kSide * kSide, across = columns / kSide * kSide;
  for (size_t top = 0; top < down; top += kBlock) {
    for (size_t left = 0; left < across; left += kBlock) {
      for (size_t c = left; c < std::min(left + kBlock, across); c += kSide) {
        for (size_t r = top; r < std::min(top + kBlock, down); r += kSide) {
          TransposeSquare(in + (r * columns + c) * 4, columns * 4, out + (c * rows + r) * 4,
                          rows * 4);
        }
      }
    }
  }
  TransposeRest(in, rows, columns, down, rows, 0, columns, out);
  TransposeRest(in, rows, columns, 0, down, across, columns, out);
}

}  // namespace
}  // namespace penstock::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(Transpose);

void TransposeWords(const uint8_t* in, size_t rows, size_t columns, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(Transpose)(in, rows, columns, out);
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
