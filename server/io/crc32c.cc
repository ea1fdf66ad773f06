#include "server/io/crc32c.h"

#include <isa-l/crc.h>

namespace penstock {

uint32_t Crc32c(const uint8_t* data, size_t size) {
  // ISA-L takes an int: longer data goes in pieces, each continuing the last.
  constexpr size_t kPiece = size_t{1} << 30;
  uint32_t crc = ~uint32_t{0};
  while (size > kPiece) {
    crc = crc32_iscsi(const_cast<uint8_t*>(data), kPiece, crc);
    data += kPiece;
    size -= kPiece;
  }
  return ~crc32_iscsi(const_cast<uint8_t*>(data), static_cast<int>(size), crc);
}

}  // namespace penstock
