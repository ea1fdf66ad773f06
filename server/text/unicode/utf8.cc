#include "server/text/unicode/utf8.h"

#include <cstring>

namespace penstock::text {
namespace {

// How many bytes the code point at `at` has, of `left` that are there; 0 where it is none. `cut`: then, how many belong together.
size_t Length(const uint8_t* at, size_t left, size_t* cut) {
  const uint8_t first = at[0];
  *cut = 1;
  if (first < 0x80) return 1;
  size_t bytes;
  uint8_t low = 0x80, high = 0xbf;  // of the second byte
  if (first >= 0xc2 && first <= 0xdf) {
    bytes = 2;
  } else if (first >= 0xe0 && first <= 0xef) {
    bytes = 3;
    if (first == 0xe0) low = 0xa0;
    if (first == 0xed) high = 0x9f;
  } else if (first >= 0xf0 && first <= 0xf4) {
    bytes = 4;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;
  } else {
    return 0;
  }
  for (size_t i = 1; i < bytes; ++i) {
    if (i >= left || at[i] < (i == 1 ? low : 0x80) || at[i] > (i == 1 ? high : 0xbf)) {
      *cut = i;
      return 0;
    }
  }
  return bytes;
}

size_t FindFrom(std::string_view text, size_t from, size_t* cut) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t i = from;
  while (i < text.size()) {
    if (bytes[i] < 0x80) {
      uint64_t eight;
      while (i + 8 <= text.size()) {
        std::memcpy(&eight, bytes + i, 8);
        if ((eight & 0x8080808080808080u) != 0) break;
        i += 8;
      }
      while (i < text.size() && bytes[i] < 0x80) ++i;
      continue;
    }
    const size_t length = Length(bytes + i, text.size() - i, cut);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

}  // namespace

size_t FindInvalidUtf8(std::string_view text) {
  size_t cut;
  return FindFrom(text, 0, &cut);
}

std::string ReplaceInvalidUtf8(std::string_view text) {
  std::string result;
  size_t from = 0, cut = 0;
  for (;;) {
    const size_t found = FindFrom(text, from, &cut);
    result.append(text.substr(from, found == std::string_view::npos ? found : found - from));
    if (found == std::string_view::npos) return result;
    result += "\xef\xbf\xbd";
    from = found + cut;
  }
}

void AppendCodePoint(uint32_t code_point, std::string* text) {
  const auto put = [&](uint32_t byte) { text->push_back(static_cast<char>(byte)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xc0 | code_point >> 6);
    put(0x80 | (code_point & 0x3f));
  } else if (code_point < 0x10000) {
    put(0xe0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  } else {
    put(0xf0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3f));
    put(0x80 | (code_point >> 6 & 0x3f));
    put(0x80 | (code_point & 0x3f));
  }
}

bool IsOneCodePoint(std::string_view text, uint32_t* code_point) {
  if (text.empty() || FindInvalidUtf8(text) != std::string_view::npos) return false;
  const auto* const at = reinterpret_cast<const uint8_t*>(text.data());
  return ReadCodePoint(at, code_point) == at + text.size();
}

}  // namespace penstock::text
