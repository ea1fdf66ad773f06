// The bytes of a model file of SentencePiece, by its fields.
#pragma once

#include <cstdint>
#include <string>

namespace penstock::testing {

inline std::string WireVarint(uint64_t number) {
  std::string out;
  for (; number >= 0x80; number >>= 7) out.push_back(static_cast<char>(number | 0x80));
  out.push_back(static_cast<char>(number));
  return out;
}

inline std::string WireBytes(int field, const std::string& bytes) {
  return WireVarint(static_cast<uint64_t>(field << 3 | 2)) + WireVarint(bytes.size()) + bytes;
}

inline std::string WireNumber(int field, uint64_t number) {
  return WireVarint(static_cast<uint64_t>(field << 3)) + WireVarint(number);
}

inline std::string WireFloat(int field, float number) {
  return WireVarint(static_cast<uint64_t>(field << 3 | 5)) +
         std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

// `type`: the number of a PieceKind.
inline std::string SentencePiece(const std::string& text, int type = 1, float score = -1) {
  return WireBytes(
      1, WireBytes(1, text) + WireFloat(2, score) + WireNumber(3, static_cast<uint64_t>(type)));
}

}  // namespace penstock::testing
