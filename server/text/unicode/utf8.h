// UTF-8 that is known to be valid, and whether it is. base/utf8.h has what takes any bytes.
//
// Threads:  functions without state.
// Cost:     FindInvalidUtf8() goes through ASCII eight bytes at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::text {

// Where the first byte stands that belongs to no code point of UTF-8; npos where there is none.
// Surrogates, overlong forms and numbers above U+10FFFF belong to none.
size_t FindInvalidUtf8(std::string_view text);

// Reads the code point at `at` and returns where the next one begins. REQUIRES: valid UTF-8, and at
// least one byte.
inline const uint8_t* ReadCodePoint(const uint8_t* at, uint32_t* code_point) {
  const uint32_t first = *at;
  if (first < 0x80) {
    *code_point = first;
    return at + 1;
  }
  if (first < 0xe0) {
    *code_point = (first & 0x1f) << 6 | (at[1] & 0x3fu);
    return at + 2;
  }
  if (first < 0xf0) {
    *code_point = (first & 0x0f) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
    return at + 3;
  }
  *code_point =
      (first & 0x07) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
  return at + 4;
}

// How many bytes the code point has that begins with `first`. REQUIRES: the first byte of one.
inline size_t CodePointBytes(uint8_t first) {
  return first < 0x80 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

void AppendCodePoint(uint32_t code_point, std::string* text);

// The only code point of a text; false for any other text, and for invalid UTF-8.
bool IsOneCodePoint(std::string_view text, uint32_t* code_point);

}  // namespace penstock::text
