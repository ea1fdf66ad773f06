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
using Bytes16 = hn::Full128<uint8_t>;

// The unsigned type of an element.
template <size_t kBytes>
using Element = hwy::UnsignedFromSize<kBytes>;

#if HWY_TARGET <= HWY_AVX3
// Both widths are whole vectors of AVX-512, whose masked loads take the bits as they are.
template <size_t kBytes>
HWY_INLINE void StoreSelected(hn::Mask128<uint8_t> bits, const Element<kBytes>* HWY_RESTRICT one,
                              const Element<kBytes>* HWY_RESTRICT zero, Element<kBytes>* out) {
  using T = Element<kBytes>;
  if constexpr (kBytes == 1) {
    const Bytes16 d;
    const auto chosen = hn::IfThenElseZero(bits, hn::LoadU(d, one));
    hn::StoreU(zero == nullptr ? chosen : hn::IfThenElse(bits, chosen, hn::LoadU(d, zero)), d, out);
  } else if constexpr (kBytes == 2) {
    const hn::FixedTag<T, 16> d;
    const hn::Mask256<T> mask{bits.raw};
    const auto chosen = hn::MaskedLoad(mask, d, one);
    hn::StoreU(zero == nullptr ? chosen : hn::IfThenElse(mask, chosen, hn::LoadU(d, zero)), d, out);
  } else {
    const hn::ScalableTag<T> d;
    constexpr size_t kLanes = 64 / kBytes;
    for (size_t i = 0; i < kBitChunk; i += kLanes) {
      using Raw = decltype(hn::Mask512<T>().raw);
      const hn::Mask512<T> mask{static_cast<Raw>(bits.raw >> i)};
      const auto chosen = hn::MaskedLoad(mask, d, one + i);
      hn::StoreU(zero == nullptr ? chosen : hn::IfThenElse(mask, chosen, hn::LoadU(d, zero + i)), d,
                 out + i);
    }
  }
}
#else
// Byte masks are widened to the elements' size.
template <class D, class V>
HWY_INLINE hn::Vec<D> WidenMask(D d, V bytes) {
  using T = hn::TFromD<D>;
  if constexpr (sizeof(T) == 2) {
    return hn::PromoteTo(d, bytes);
  } else if constexpr (sizeof(T) == 4) {
    return hn::PromoteTo(d, bytes);
  } else {
    const hn::Rebind<int32_t, D> half;
    return hn::PromoteTo(d, hn::PromoteTo(half, bytes));
  }
}

template <size_t kBytes>
HWY_INLINE void StoreSelected(hn::Mask128<uint8_t> bits, const Element<kBytes>* HWY_RESTRICT one,
                              const Element<kBytes>* HWY_RESTRICT zero, Element<kBytes>* out) {
  using T = Element<kBytes>;
  const Bytes16 d8;
  const auto chosen8 = hn::VecFromMask(d8, bits);
  if constexpr (kBytes == 1) {
    const auto b = hn::LoadU(d8, one);
    hn::StoreU(zero == nullptr ? hn::And(chosen8, b) : hn::IfThenElse(bits, b, hn::LoadU(d8, zero)),
               d8, out);
  } else {
    const hn::ScalableTag<T> d;
    const hn::RebindToSigned<decltype(d)> ds;
    const hn::Rebind<int8_t, decltype(d)> part;
    constexpr size_t kLanes = hn::MaxLanes(d);
    HWY_ALIGN int8_t selected[kBitChunk];
    hn::Store(chosen8, d8, reinterpret_cast<uint8_t*>(selected));
    for (size_t i = 0; i < kBitChunk; i += kLanes) {
      const auto mask = hn::BitCast(d, WidenMask(ds, hn::LoadU(part, selected + i)));
      const auto b = hn::LoadU(d, one + i);
      const auto chosen = zero == nullptr
                              ? hn::And(mask, b)
                              : hn::Or(hn::And(mask, b), hn::AndNot(mask, hn::LoadU(d, zero + i)));
      hn::StoreU(chosen, d, out + i);
    }
  }
}
#endif

// The bits of chunk `c` as a mask.
template <bool kOneWindow>
HWY_INLINE hn::Mask128<uint8_t> ChunkBits(const BitSelectTable& table,
                                          const uint8_t* HWY_RESTRICT row, size_t c) {
  const Bytes16 d;
  const size_t windows = kOneWindow ? 1 : table.windows;
  const size_t w = c * windows;
  auto bytes = hn::TableLookupBytesOr0(hn::LoadU(d, row + table.offset[w]),
                                       hn::LoadU(d, table.shuffle + w * 16));
  if constexpr (!kOneWindow) {
    for (size_t i = 1; i < windows; ++i) {
      bytes = hn::Or(bytes, hn::TableLookupBytesOr0(hn::LoadU(d, row + table.offset[w + i]),
                                                    hn::LoadU(d, table.shuffle + (w + i) * 16)));
    }
  }
  return hn::TestBit(bytes, hn::LoadU(d, table.mask + c * 16));
}

template <size_t kBytes, bool kOneWindow, bool kZero>
void SelectRows(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out_bytes) {
  using T = Element<kBytes>;
  const T* HWY_RESTRICT one = reinterpret_cast<const T*>(table.one);
  const T* HWY_RESTRICT zero = kZero ? nullptr : reinterpret_cast<const T*>(table.zero);
  const size_t chunks = table.elements / kBitChunk;
  const size_t rest = table.elements % kBitChunk;
  T* out = reinterpret_cast<T*>(out_bytes);
  const T* const end_of_rows = out + rows * table.elements;
  for (size_t r = 0; r < rows; ++r) {
    const uint8_t* row = in.row(r);
    size_t c = 0;
    for (size_t n = chunks; n > 0; row += table.period_bytes, c = 0) {
      const size_t end = n < table.period_chunks ? n : table.period_chunks;
      n -= end;
      for (; c < end; ++c) {
        StoreSelected<kBytes>(ChunkBits<kOneWindow>(table, row, c), one + c * kBitChunk,
                              kZero ? nullptr : zero + c * kBitChunk, out);
        out += kBitChunk;
      }
      if (c < table.period_chunks) break;
    }
    if (rest == 0) continue;
    if (c == table.period_chunks) c = 0;
    const auto bits = ChunkBits<kOneWindow>(table, row, c);
    const T* zero_at = kZero ? nullptr : zero + c * kBitChunk;
    if (static_cast<size_t>(end_of_rows - out) >= kBitChunk) {
      StoreSelected<kBytes>(bits, one + c * kBitChunk, zero_at, out);
    } else {
      HWY_ALIGN T last[kBitChunk];
      StoreSelected<kBytes>(bits, one + c * kBitChunk, zero_at, last);
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

template <size_t kBytes>
void SelectOfSize(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out) {
  if (table.elements == 1 && table.windows == 1) return SelectSingle<kBytes>(table, in, rows, out);
  if (table.windows == 1) {
    if (table.zero == nullptr) return SelectRows<kBytes, true, true>(table, in, rows, out);
    return SelectRows<kBytes, true, false>(table, in, rows, out);
  }
  if (table.zero == nullptr) return SelectRows<kBytes, false, true>(table, in, rows, out);
  return SelectRows<kBytes, false, false>(table, in, rows, out);
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

}  // namespace HWY_NAMESPACE
}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace penstock::kernels {

HWY_EXPORT(SelectBits);

void BitSelect(const BitSelectTable& table, const Column& in, size_t rows, uint8_t* out) {
  HWY_DYNAMIC_DISPATCH(SelectBits)(table, in, rows, out);
}

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
