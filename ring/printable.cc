#include "ring/printable.h"

#include <cstddef>
#include <cstdint>

namespace penstock::ring {

bool IsPrintableUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const uint8_t first = static_cast<uint8_t>(text[at++]);
    if (first < 0x80) {
      if (first < 0x20 || first == 0x7f) return false;
      continue;
    }
    const int further = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : 1;
    if (first < 0xc2 || first > 0xf4 || text.size() - at < static_cast<size_t>(further)) {
      return false;
    }
    uint32_t point = first & (0x3f >> further);
    for (int i = 0; i < further; ++i) {
      const uint8_t next = static_cast<uint8_t>(text[at++]);
      if ((next & 0xc0) != 0x80) return false;
      point = point << 6 | (next & 0x3f);
    }
    constexpr uint32_t kLeast[] = {0, 0xa0, 0x800, 0x10000};  // C1 ends at 0x9f
    if (point < kLeast[further] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff)) {
      return false;
    }
  }
  return true;
}

}  // namespace penstock::ring
