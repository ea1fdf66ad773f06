#include "server/codec/packed_varints.h"

#include <bit>
#include <cstring>

#include "server/codec/wire.h"

namespace penstock {
namespace {

constexpr uint64_t kContinues = 0x8080808080808080;
constexpr ptrdiff_t kWord = 8;

uint64_t LoadWord(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

// Joins the low seven bits of eight bytes.
uint64_t JoinSevens(uint64_t x) {
  x &= ~kContinues;
  x = (x & 0x007f007f007f007f) | (x & 0x7f007f007f007f00) >> 1;
  x = (x & 0x00003fff00003fff) | (x & 0x3fff00003fff0000) >> 2;
  return (x & 0x000000000fffffff) | (x & 0x0fffffff00000000) >> 4;
}

}  // namespace

size_t CountPackedVarints(const uint8_t* p, const uint8_t* end) {
  size_t count = 0;
  for (; end - p >= kWord; p += kWord)
    count += static_cast<size_t>(std::popcount(~LoadWord(p) & kContinues));
  for (; p < end; ++p) count += *p < 0x80;
  return count;
}

bool CheckPackedVarints(const uint8_t* p, const uint8_t* end) {
  uint64_t value;
  while (p != nullptr && p < end) p = wire::ReadVarint(p, end, &value);
  return p != nullptr;
}

bool ReadPackedVarints(const uint8_t* p, const uint8_t* end, const uint8_t* limit,
                       uint64_t* values) {
  while (p < end) {
    if (limit - p >= kWord) {
      const uint64_t word = LoadWord(p);
      const uint64_t stops = ~word & kContinues;
      if (stops == kContinues && end - p >= kWord) {
        for (int i = 0; i < kWord; ++i) values[i] = p[i];
        values += kWord;
        p += kWord;
        continue;
      }
      const int bytes = std::countr_zero(stops) / 8 + 1;  // 9: it is longer
      if (bytes <= kWord) {
        if (bytes > end - p) return false;
        *values++ = JoinSevens(word & (stops ^ (stops - 1)));
        p += bytes;
        continue;
      }
    }
    p = wire::ReadVarint(p, end, values);
    if (p == nullptr) return false;
    ++values;
  }
  return true;
}

}  // namespace penstock
