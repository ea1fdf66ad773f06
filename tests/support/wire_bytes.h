// Fields of protobuf messages, put together by hand.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::testing {

// At least `bytes_min` bytes, which pads the varint with needless continuation bytes.
inline std::string Varint(uint64_t value, size_t bytes_min = 1) {
  std::string out;
  while (value >= 0x80 || out.size() + 1 < bytes_min) {
    out.push_back(static_cast<char>((value & 0x7f) | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
  return out;
}

inline std::string Tag(uint32_t number, uint32_t wire_type, size_t bytes_min = 1) {
  return Varint(number << 3 | wire_type, bytes_min);
}

// A length-delimited field.
inline std::string Field(uint32_t number, const std::string& content, size_t size_bytes_min = 1) {
  return Tag(number, 2) + Varint(content.size(), size_bytes_min) + content;
}

}  // namespace penstock::testing
