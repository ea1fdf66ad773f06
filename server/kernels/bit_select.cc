#include "server/kernels/bit_select.h"

#include <cstring>

#include "server/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "server/kernels/bit_select.cc"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// The unsigned type of an element.
template <size_t kBytes>
using Element = hwy::UnsignedFromSize<kBytes>;

template <size_t kChunk>
using ByteTag = hn::FixedTag<uint8_t, kChunk>;
template <size_t kChunk>
using BitMask = hn::Mask<ByteTag<kChunk>>;

// Calls visit(mask, i) for each vector of elements i, i + 1 … that begins in front of `count`, with
// the elements whose bits are set.
#if HWY_TARGET <= HWY_AVX3
// A mask register is shifted where it lies: by way of a general one, which is what a plain shift
// compiles to, a vector took six cycles instead of two on Zen 4.
template <size_t kShift, size_t kChunk>
HWY_INLINE auto UpperBits(BitMask<kChunk> bits) {
  if constexpr (kShift == 0) {
    return bits.raw;
  } else if constexpr (kChunk == 64) {
    return _kshiftri_mask64(bits.raw, kShift);
  } else {
    return _kshiftri_mask16(bits.raw, kShift);
  }
}

template <size_t kBytes, size_t kChunk, class Visit, size_t kFirst = 0>
HWY_INLINE void ForEachVector(BitMask<kChunk> bits, size_t count, const Visit& visit) {
  using D = hn::CappedTag<Element<kBytes>, kChunk>;
  using Mask = hn::Mask<D>;
  constexpr size_t kNext = kFirst + hn::MaxLanes(D());
  visit(Mask{static_cast<decltype(Mask().raw)>(UpperBits<kFirst, kChunk>(bits))}, kFirst);
  if constexpr (kNext < kChunk) {
    if (kNext < count) ForEachVector<kBytes, kChunk, Visit, kNext>(bits, count, visit);
  }
}
#else
// Byte masks are widened to the elements' size by way of memory.
template <class D>
HWY_INLINE hn::Vec<D> WidenMask(D d, const int8_t* bytes) {
  const hn::Rebind<int8_t, D> narrow;
  const auto mask = hn::LoadU(narrow, bytes);
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    const hn::Rebind<int32_t, D> half;
    return hn::PromoteTo(d, hn::PromoteTo(half, mask));
  } else if constexpr (sizeof(hn::TFromD<D>) == 1) {
    return mask;
  } else {
    return hn::PromoteTo(d, mask);
  }
}

template <size_t kBytes, size_t kChunk, class Visit>
HWY_INLINE void ForEachVector(BitMask<kChunk> bits, size_t count, const Visit& visit) {
  const ByteTag<kChunk> d8;
  const hn::CappedTag<Element<kBytes>, kChunk> d;
  const hn::RebindToSigned<decltype(d)> ds;
  constexpr size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN int8_t selected[kChunk];
  hn::Store(hn::VecFromMask(d8, bits), d8, reinterpret_cast<uint8_t*>(selected));
  for (size_t i = 0; i < kChunk; i += kLanes) {
    if (i >= count) break;
    visit(hn::MaskFromVec(hn::BitCast(d, WidenMask(ds, selected + i))), i);
  }
}
#endif

// Stores the first `count` elements of a chunk, rounded up to whole vectors.
template <size_t kBytes, size_t kChunk>
HWY_INLINE void StoreSelected(BitMask<kChunk> bits, const Element<kBytes>* HWY_RESTRICT one,
                              const Element<kBytes>* HWY_RESTRICT zero, Element<kBytes>* out,
                              size_t count) {
  const hn::CappedTag<Element<kBytes>, kChunk> d;
  ForEachVector<kBytes, kChunk>(bits, count, [&](auto mask, size_t i) HWY_ATTR {
    const auto set = hn::LoadU(d, one + i);
    hn::StoreU(zero == nullptr ? hn::IfThenElseZero(mask, set)
                               : hn::IfThenElse(mask, set, hn::LoadU(d, zero + i)),
               d, out + i);
  });
}

// The bits of chunk `c` as a mask.
template <size_t kChunk, bool kOneWindow>
HWY_INLINE BitMask<kChunk> ChunkBits(const BitSelectTable& table, const uint8_t* HWY_RESTRICT row,
                                     size_t c) {
  const ByteTag<kChunk> d;
  const size_t windows = kOneWindow ? 1 : table.windows;
  const size_t w = c * windows;
  auto bytes = hn::TableLookupBytesOr0(hn::LoadDup128(d, row + table.offset[w]),
                                       hn::LoadU(d, table.shuffle + w * kChunk));
  if constexpr (!kOneWindow) {
    for (size_t i = 1; i < windows; ++i) {
      bytes =
          hn::Or(bytes, hn::TableLookupBytesOr0(hn::LoadDup128(d, row + table.offset[w + i]),
                                                hn::LoadU(d, table.shuffle + (w + i) * kChunk)));
    }
  }
  return hn::TestBit(bytes, hn::LoadU(d, table.mask + c * kChunk));
}

template <size_t kBytes, size_t kChunk, bool kOneWindow, bool kZero>
void SelectRows(const BitSelectTable& shared, const Column& in, size_t rows, uint8_t* out_bytes) {
  // A copy, since the compiler must assume that stores to `out` change what a reference leads to.
  const BitSelectTable table = shared;
  using T = Element<kBytes>;
  const T* HWY_RESTRICT one = reinterpret_cast<const T*>(table.one);
  const T* HWY_RESTRICT zero = kZero ? nullptr : reinterpret_cast<const T*>(table.zero);
  const size_t chunks = table.elements / kChunk;
  const size_t rest = table.elements % kChunk;
  T* out = reinterpret_cast<T*>(out_bytes);
  const T* const end_of_rows = out + rows * table.elements;
  for (size_t r = 0; r < rows; ++r) {
    const uint8_t* row = in.row(r);
    size_t c = 0;
    for (size_t n = 0; n < chunks; ++n) {
      StoreSelected<kBytes, kChunk>(ChunkBits<kChunk, kOneWindow>(table, row, c), one + c * kChunk,
                                    kZero ? nullptr : zero + c * kChunk, out, kChunk);
      out += kChunk;
      if (++c == table.period_chunks) {
        c = 0;
        row += table.period_bytes;
      }
    }
    if (rest == 0) continue;
    const auto bits = ChunkBits<kChunk, kOneWindow>(table, row, c);
    const T* zero_at = kZero ? nullptr : zero + c * kChunk;
    if (static_cast<size_t>(end_of_rows - out) >= kChunk) {
      StoreSelected<kBytes, kChunk>(bits, one + c * kChunk, zero_at, out, rest);
    } else {
      HWY_ALIGN T last[kChunk];
      StoreSelected<kBytes, kChunk>(bits, one + c * kChunk, zero_at, last, rest);
      std::memcpy(out, last, rest * kBytes);
    }
    out += rest;
  }
}

// Whole rows of few tables: `kPeriod` chunks, and constants that repeat after kConstants vectors.
// All of them stay in registers, so that nothing but the row's bytes is loaded between the stores.
template <size_t kBytes, size_t kChunk, size_t kPeriod, size_t kConstants>
void SelectSmallRows(const BitSelectTable& table, const Column& in, size_t rows,
                     uint8_t* out_bytes) {
  using T = Element<kBytes>;
  const ByteTag<kChunk> d8;
  const hn::CappedTag<T, kChunk> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  hn::Vec<decltype(d8)> shuffle[kPeriod];
  hn::Vec<decltype(d8)> mask[kPeriod];
  size_t offset[kPeriod];
  for (size_t c = 0; c < kPeriod; ++c) {
    shuffle[c] = hn::LoadU(d8, table.shuffle + c * kChunk);
    mask[c] = hn::LoadU(d8, table.mask + c * kChunk);
    offset[c] = static_cast<size_t>(table.offset[c]);
  }
  hn::Vec<decltype(d)> one[kConstants];
  for (size_t i = 0; i < kConstants; ++i)
    one[i] = hn::LoadU(d, reinterpret_cast<const T*>(table.one) + i * kLanes);
  const size_t periods = table.elements / (kPeriod * kChunk);
  const size_t period_bytes = table.period_bytes;
  T* HWY_RESTRICT out = reinterpret_cast<T*>(out_bytes);
  for (size_t r = 0; r < rows; ++r) {
    const uint8_t* HWY_RESTRICT row = in.row(r);
    for (size_t n = 0; n < periods; ++n, row += period_bytes) {
#pragma GCC unroll 4
      for (size_t c = 0; c < kPeriod; ++c, out += kChunk) {
        const auto bits = hn::TestBit(
            hn::TableLookupBytesOr0(hn::LoadDup128(d8, row + offset[c]), shuffle[c]), mask[c]);
        ForEachVector<kBytes, kChunk>(bits, kChunk, [&](auto set, size_t i) HWY_ATTR {
          hn::StoreU(hn::IfThenElseZero(set, one[(c * kChunk + i) / kLanes % kConstants]), d,
                     out + i);
        });
      }
    }
  }
}

#if HWY_TARGET > HWY_AVX3
// Rows of words: three instructions a vector. With mask registers the chunks' bits need no
// widening, and are as fast.
template <size_t kBytes, size_t kVectors>
void SelectWords(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out_bytes) {
  using T = Element<kBytes>;
  const hn::ScalableTag<T> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  hn::Vec<decltype(d)> mask[kVectors], one[kVectors];
  for (size_t v = 0; v < kVectors; ++v) {
    mask[v] = hn::LoadU(d, reinterpret_cast<const T*>(table.word_mask) + v * kLanes);
    one[v] = hn::LoadU(d, reinterpret_cast<const T*>(table.word_one) + v * kLanes);
  }
  const size_t words = table.elements / (kVectors * kLanes);
  const size_t offset = table.word_offset, stride = table.word_stride;
  T* HWY_RESTRICT out = reinterpret_cast<T*>(out_bytes);
  for (size_t r = 0; r < rows; ++r) {
    const uint8_t* HWY_RESTRICT at = in.row(r) + offset;
    for (size_t n = 0; n < words; ++n, at += stride, out += kVectors * kLanes) {
      T word;
      std::memcpy(&word, at, kBytes);
      const auto bits = hn::Set(d, word);
#pragma GCC unroll 6
      for (size_t v = 0; v < kVectors; ++v)
        hn::StoreU(hn::IfThenElseZero(hn::TestBit(bits, mask[v]), one[v]), d, out + v * kLanes);
    }
  }
}

// False where the table has no words that this instruction set could use.
template <size_t kBytes, size_t kVectors = 1>
bool SelectByWords(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out) {
  if constexpr (kBytes >= 4 && kVectors <= kMaxWordVectors) {
    constexpr size_t kLanes = hn::MaxLanes(hn::ScalableTag<Element<kBytes>>());
    if (table.word_elements != kVectors * kLanes)
      return SelectByWords<kBytes, kVectors + 1>(table, in, rows, out);
    SelectWords<kBytes, kVectors>(table, in, rows, out);
    return true;
  }
  return false;
}
#else
template <size_t kBytes>
bool SelectByWords(const BitSelectTable&, const Column&, size_t, uint8_t*) {
  return false;
}
#endif

// One bit of each row: a chunk would be mostly waste.
template <size_t kBytes>
void SelectSingle(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out_bytes) {
  using T = Element<kBytes>;
  T one;
  T zero = 0;
  std::memcpy(&one, table.one, kBytes);
  if (table.zero != nullptr) std::memcpy(&zero, table.zero, kBytes);
  const size_t byte = static_cast<size_t>(table.offset[0]) + table.shuffle[0];
  T* HWY_RESTRICT out = reinterpret_cast<T*>(out_bytes);
  for (size_t r = 0; r < rows; ++r) out[r] = in.row(r)[byte] & table.mask[0] ? one : zero;
}

template <size_t kBytes, size_t kChunk>
void SelectOfChunk(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out) {
  constexpr size_t kLanes = kChunk < hn::MaxLanes(hn::ScalableTag<Element<kBytes>>())
                                ? kChunk
                                : hn::MaxLanes(hn::ScalableTag<Element<kBytes>>());
  const bool whole = table.windows == 1 && table.zero == nullptr && table.constant_period != 0 &&
                     table.elements % (table.period_chunks * kChunk) == 0;
  if (whole && table.period_chunks == 3 && 3 * kLanes % table.constant_period == 0)
    return SelectSmallRows<kBytes, kChunk, 3, 3>(table, in, rows, out);
  if (whole && table.period_chunks == 1 && kLanes % table.constant_period == 0)
    return SelectSmallRows<kBytes, kChunk, 1, 1>(table, in, rows, out);
  if (table.windows == 1) {
    if (table.zero == nullptr) return SelectRows<kBytes, kChunk, true, true>(table, in, rows, out);
    return SelectRows<kBytes, kChunk, true, false>(table, in, rows, out);
  }
  if (table.zero == nullptr) return SelectRows<kBytes, kChunk, false, true>(table, in, rows, out);
  return SelectRows<kBytes, kChunk, false, false>(table, in, rows, out);
}

template <size_t kBytes>
void SelectOfSize(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out) {
  if (table.elements == 1 && table.windows == 1) return SelectSingle<kBytes>(table, in, rows, out);
  if (table.word_elements != 0 && SelectByWords<kBytes>(table, in, rows, out)) return;
  constexpr size_t kWide = hn::MaxLanes(hn::ScalableTag<uint8_t>());
  if (table.chunk == kMinBitChunk) {
    SelectOfChunk<kBytes, kMinBitChunk>(table, in, rows, out);
  } else {
    SelectOfChunk<kBytes, kWide>(table, in, rows, out);
  }
}

void SelectBits(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out) {
  switch (table.element_bytes) {
    case 1:
      return SelectOfSize<1>(table, in, rows, out);
    case 2:
      return SelectOfSize<2>(table, in, rows, out);
    case 4:
      return SelectOfSize<4>(table, in, rows, out);
    default:
      return SelectOfSize<8>(table, in, rows, out);
  }
}

BitSelectKernel FindSelectBits() { return SelectBits; }
size_t VectorSize() { return hn::MaxLanes(hn::ScalableTag<uint8_t>()); }

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(FindSelectBits);
HWY_EXPORT(VectorSize);

BitSelectKernel FindBitSelect() { return HWY_DYNAMIC_DISPATCH(FindSelectBits)(); }
size_t BitSelectVectorBytes() { return HWY_DYNAMIC_DISPATCH(VectorSize)(); }

void BitSelectScalar(const int32_t* index, const uint8_t* one, const uint8_t* zero, size_t elements,
                     size_t element_bytes, const Column& in, size_t rows, uint8_t* out) {
  for (size_t r = 0; r < rows; ++r) {
    const uint8_t* row = in.row(r);
    for (size_t i = 0; i < elements; ++i) {
      const bool bit = row[index[i] / 8] >> (7 - index[i] % 8) & 1;
      if (bit) {
        std::memcpy(out, one + i * element_bytes, element_bytes);
      } else if (zero != nullptr) {
        std::memcpy(out, zero + i * element_bytes, element_bytes);
      } else {
        std::memset(out, 0, element_bytes);
      }
      out += element_bytes;
    }
  }
}

}  // namespace penstock::kernels
#endif  // HWY_ONCE
