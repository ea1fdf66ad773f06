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

// Stores the first `count` elements of a chunk, rounded up to whole vectors.
#if HWY_TARGET <= HWY_AVX3
// AVX-512's masked loads take the bits as they are.
template <size_t kBytes, size_t kChunk>
HWY_INLINE void StoreSelected(BitMask<kChunk> bits, const Element<kBytes>* HWY_RESTRICT one,
                              const Element<kBytes>* HWY_RESTRICT zero, Element<kBytes>* out,
                              size_t count) {
  using T = Element<kBytes>;
  const hn::CappedTag<T, kChunk> d;
  constexpr size_t kLanes = hn::MaxLanes(d);
  const auto raw = static_cast<uint64_t>(bits.raw);
  for (size_t i = 0; i < kChunk; i += kLanes) {
    if (i >= count) break;
    using Mask = hn::Mask<decltype(d)>;
    const Mask mask{static_cast<decltype(Mask().raw)>(raw >> i)};
    const auto chosen = hn::MaskedLoad(mask, d, one + i);
    hn::StoreU(zero == nullptr ? chosen : hn::IfThenElse(mask, chosen, hn::LoadU(d, zero + i)), d,
               out + i);
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

template <size_t kBytes, size_t kChunk>
HWY_INLINE void StoreSelected(BitMask<kChunk> bits, const Element<kBytes>* HWY_RESTRICT one,
                              const Element<kBytes>* HWY_RESTRICT zero, Element<kBytes>* out,
                              size_t count) {
  using T = Element<kBytes>;
  const ByteTag<kChunk> d8;
  const hn::CappedTag<T, kChunk> d;
  const hn::RebindToSigned<decltype(d)> ds;
  constexpr size_t kLanes = hn::MaxLanes(d);
  HWY_ALIGN int8_t selected[kChunk];
  hn::Store(hn::VecFromMask(d8, bits), d8, reinterpret_cast<uint8_t*>(selected));
  for (size_t i = 0; i < kChunk; i += kLanes) {
    if (i >= count) break;
    const auto mask = hn::BitCast(d, WidenMask(ds, selected + i));
    const auto b = hn::And(mask, hn::LoadU(d, one + i));
    hn::StoreU(zero == nullptr ? b : hn::Or(b, hn::AndNot(mask, hn::LoadU(d, zero + i))), d,
               out + i);
  }
}
#endif

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
