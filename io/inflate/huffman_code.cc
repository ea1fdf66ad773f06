#include "io/inflate/huffman_code.h"

#include <algorithm>

#include "io/inflate/doubled_table.h"

namespace penstock {

bool HuffmanCode::Build(absl::Span<const uint8_t> lengths) {
  std::fill(std::begin(num_codes_), std::end(num_codes_), 0);
  for (const uint8_t length : lengths) ++num_codes_[length];
  num_codes_[0] = 0;

  uint32_t code = 0;
  uint32_t num_symbols = 0;
  uint32_t longest = 0;
  uint16_t next_place[kBitsMax + 1];
  for (uint32_t bits = 1; bits <= kBitsMax; ++bits) {
    code <<= 1;
    if (code + num_codes_[bits] > uint32_t{1} << bits) return false;
    first_code_[bits] = static_cast<uint16_t>(code);
    next_place[bits] = static_cast<uint16_t>(num_symbols);
    code += num_codes_[bits];
    num_symbols += num_codes_[bits];
    if (num_codes_[bits] > 0) longest = bits;
  }
  if (code < uint32_t{1} << kBitsMax && longest > 1) return false;

  for (size_t symbol = 0; symbol < lengths.size(); ++symbol) {
    if (lengths[symbol] > 0)
      symbols_[next_place[lengths[symbol]]++] = static_cast<uint16_t>(symbol);
  }
  // What the first bits say holds whatever is behind them: each length doubles the table of the
  // shorter ones.
  size_t place = 0;
  direct_[0] = 0;
  for (uint32_t bits = 1; bits <= kDirectBits; ++bits) {
    const size_t half = size_t{1} << (bits - 1);
    CopyEntries(direct_, half, direct_ + half);
    for (uint32_t i = 0; i < num_codes_[bits]; ++i, ++place) {
      direct_[Reverse(first_code_[bits] + i, bits)] =
          static_cast<uint16_t>(symbols_[place] << kLengthBits | bits);
    }
  }
  std::fill(std::begin(longer_[0]), std::end(longer_[0]), 0);
  uint32_t num_longer = 1;
  for (uint32_t bits = kDirectBits + 1; bits <= longest; ++bits) {
    for (uint32_t i = 0; i < num_codes_[bits]; ++i, ++place) {
      const uint32_t reversed = Reverse(first_code_[bits] + i, bits);
      uint16_t& direct = direct_[reversed & (kDirectEntries - 1)];
      if (direct == 0) direct = static_cast<uint16_t>(num_longer++ << kLengthBits);
      for (size_t next = reversed >> kDirectBits; next < kLongerEntries;
           next += size_t{1} << (bits - kDirectBits))
        longer_[direct >> kLengthBits][next] =
            static_cast<uint16_t>(symbols_[place] << kLengthBits | bits);
    }
  }
  return true;
}

}  // namespace penstock
