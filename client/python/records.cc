#include "client/python/records.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

#if defined(__SSE4_2__)
#include <nmmintrin.h>
#endif

namespace nb = nanobind;

namespace penstock_python {
namespace {

// CRC-32C (Castagnoli), as io/file/crc32c.h has it: what that is built on is nothing for a
// trainer's process.
uint32_t Crc32c(const uint8_t* data, size_t size) {
  uint64_t crc = ~uint32_t{0};
#if defined(__SSE4_2__)
  for (; size >= sizeof(uint64_t); size -= sizeof(uint64_t), data += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, data, sizeof(word));
    crc = _mm_crc32_u64(crc, word);
  }
  for (; size > 0; --size, ++data) crc = _mm_crc32_u8(static_cast<uint32_t>(crc), *data);
#else
  for (; size > 0; --size, ++data) {
    crc ^= *data;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
  }
#endif
  return ~static_cast<uint32_t>(crc);
}

// As TFRecords store it.
uint32_t MaskedCrc32c(const nb::bytes& bytes) {
  const uint32_t crc = Crc32c(reinterpret_cast<const uint8_t*>(bytes.c_str()), bytes.size());
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace

void DefineRecords(nb::module_& m) {
  m.def("masked_crc32c", &MaskedCrc32c, nb::arg("data"),
        "The CRC-32C of bytes in the form in which a TFRecord stores it.");
}

}  // namespace penstock_python
