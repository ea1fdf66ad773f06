// Numbers as they stand in the bytes of files and protocols, at any address.
//
// Threads:  any; no state.
// Cost:     an instruction or two.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace penstock {

// The least significant byte comes first.
template <typename T>
T LoadLittle(const uint8_t* bytes) {
  static_assert(std::endian::native == std::endian::little);
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// The most significant byte comes first, of as many as `kBytes`.
template <typename T, size_t kBytes = sizeof(T)>
T LoadBig(const uint8_t* bytes) {
  static_assert(std::is_unsigned_v<T> && kBytes <= sizeof(T));
  uint64_t value = 0;
  for (size_t i = 0; i < kBytes; ++i) value = value << 8 | bytes[i];
  return static_cast<T>(value);
}

}  // namespace penstock
