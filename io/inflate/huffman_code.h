// A prefix code of deflate (RFC 1951, 3.2.2): codes of 1 to 15 bits, given by their lengths alone,
// each read from the stream's low bits with its own first bit lowest.
//
// Threads:  const calls from any.
// Cost:     a code of up to kDirectBits bits is found by one look into a table, a longer one by a
//           second look into another. Making one takes about a microsecond.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

class HuffmanCode {
 public:
  static constexpr uint32_t kBitsMax = 15;
  static constexpr uint32_t kDirectBits = 11;
  static constexpr size_t kSymbolsMax = 288;

  struct Found {
    uint32_t symbol;
    uint32_t bits;  // 0: no code begins so
  };

  // The code in which symbol i has lengths[i] bits (0: the symbol does not occur). False for what
  // zlib refuses: more codes than their lengths allow, and fewer, unless there is only one code, of
  // 1 bit, or none.
  bool Build(absl::Span<const uint8_t> lengths);

  // The code at the low end of `bits`, where 15 bits must be (those behind the code do not matter).
  Found Find(uint64_t bits) const {
    const Found found = Unpack(direct_[bits & (kDirectEntries - 1)]);
    if (found.bits != 0) return found;
    return Unpack(longer_[found.symbol][bits >> kDirectBits & (kLongerEntries - 1)]);
  }

  // Calls visit(symbol, bits, code) for each code of at most kDirectBits bits, the code's first bit
  // lowest.
  template <typename Visit>
  void ForEachDirect(const Visit& visit) const {
    size_t place = 0;
    for (uint32_t bits = 1; bits <= kDirectBits; ++bits) {
      for (uint32_t i = 0; i < num_codes_[bits]; ++i, ++place)
        visit(uint32_t{symbols_[place]}, bits, Reverse(first_code_[bits] + i, bits));
    }
  }

 private:
  static constexpr size_t kDirectEntries = size_t{1} << kDirectBits;
  static constexpr size_t kLongerEntries = size_t{1} << (kBitsMax - kDirectBits);
  static constexpr uint32_t kLengthBits = 4;

  static Found Unpack(uint32_t entry) {
    return {entry >> kLengthBits, entry & ((1 << kLengthBits) - 1)};
  }

  // The `bits` low bits of `code` in the other order.
  static uint32_t Reverse(uint32_t code, uint32_t bits) {
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return code >> (16 - bits);
  }

  // Of each length: its codes are consecutive numbers, and stand consecutively in symbols_.
  uint16_t num_codes_[kBitsMax + 1];
  uint16_t first_code_[kBitsMax + 1];
  uint16_t symbols_[kSymbolsMax];
  // By the next kDirectBits bits: symbol << kLengthBits | bits; for what begins longer codes, and
  // for none, with 0 bits and the place in longer_ instead of the symbol.
  uint16_t direct_[kDirectEntries];
  // The same by the bits behind those. The first one has no codes; the others have two at least.
  uint16_t longer_[1 + kSymbolsMax / 2][kLongerEntries];
};

}  // namespace penstock
