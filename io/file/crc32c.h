// CRC-32C (Castagnoli) and TFRecord's mask of it.
//
// Threads:  functions without state.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace penstock {

uint32_t Crc32c(const uint8_t* data, size_t size);

// The checksum of some bytes, whose own is `crc`, and of these behind them. 0 is that of no bytes.
uint32_t ExtendCrc32c(uint32_t crc, const uint8_t* data, size_t size);

// The checksum of one little-endian 64-bit number, which every record's header holds: one
// instruction where there is one.
inline uint32_t Crc32cOfU64(uint64_t value) {
#if defined(__SSE4_2__)
  return ~static_cast<uint32_t>(_mm_crc32_u64(~uint32_t{0}, value));
#else
  return Crc32c(reinterpret_cast<const uint8_t*>(&value), sizeof(value));
#endif
}

// The form in which a TFRecord stores a checksum: rotated right by 15 bits, plus a constant, so
// that a checksum of data that holds checksums is no special case. (The TFRecord format.)
inline uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace penstock
