#include "client/ctl/batches/crc32c.h"

#include <isa-l.h>

#include <algorithm>

namespace penstock::ctl {

uint32_t AddToCrc32c(uint32_t crc, std::span<const std::byte> bytes) {
  // ISA-L takes an int for the size.
  constexpr size_t kMaxChunkBytes = 1 << 30;
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(bytes.size(), kMaxChunkBytes));
    auto* data = reinterpret_cast<unsigned char*>(const_cast<std::byte*>(chunk.data()));
    crc = crc32_iscsi(data, static_cast<int>(chunk.size()), crc);
    bytes = bytes.subspan(chunk.size());
  }
  return crc;
}

}  // namespace penstock::ctl
