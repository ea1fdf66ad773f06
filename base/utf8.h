// Characters of UTF-8, of bytes that may be anything.
//
// Threads:  functions without state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {

// Whether the byte continues a character.
inline bool ContinuesUtf8(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Bytes that begin a character: all that continue none.
inline size_t CountUtf8(absl::string_view text) {
  return text.size() - static_cast<size_t>(std::count_if(text.begin(), text.end(), ContinuesUtf8));
}

// The code point at the beginning of a text that has a byte, and its bytes; -1 and the bytes of the
// longest beginning of a character, at least one, where there is none (The Unicode Standard
// 15, 3.9: "U+FFFD Substitution of Maximal Subparts"; table 3-7 of what is well formed).
int32_t DecodeUtf8(absl::string_view text, size_t* bytes);

// The text with U+FFFD in the place of each longest beginning of a character that is none: what
// Python's decoders make with errors="replace". A long text looks for a stop (base/stop_flag.h).
std::string ReplaceNoUtf8(absl::string_view text);

// For messages, which may quote any bytes: every byte that is no UTF-8 as \xNN, and only as many
// whole characters as `bytes_max` has room for.
std::string ReadableUtf8(absl::string_view text, size_t bytes_max = SIZE_MAX);

}  // namespace penstock
