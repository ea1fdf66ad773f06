// CRC-32C (Castagnoli) and TFRecord's mask of it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock {

uint32_t Crc32c(const uint8_t* data, size_t size);

// The form in which a TFRecord stores a checksum: rotated right by 15 bits, plus a constant, so that a checksum of data that holds
// checksums is no special case. (The TFRecord format.)
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace penstock
