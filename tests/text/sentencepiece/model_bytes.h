// The bytes of a model file of SentencePiece, by its fields.
#pragma once

#include <cstdint>
#include <string>

#include "tests/support/wire_bytes.h"

namespace penstock::testing {

inline std::string Number(uint32_t field, uint64_t number) {
  return Tag(field, 0) + Varint(number);
}

inline std::string Float(uint32_t field, float number) {
  return Tag(field, 5) + std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

// `type`: the number of a PieceKind.
inline std::string SentencePiece(const std::string& text, uint32_t type = 1, float score = -1) {
  return Field(1, Field(1, text) + Float(2, score) + Number(3, type));
}

}  // namespace penstock::testing
