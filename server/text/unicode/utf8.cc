#include "server/text/unicode/utf8.h"

#include <cstring>

#include "base/stop_flag.h"
#include "base/utf8.h"

namespace penstock::text {

size_t FindInvalidUtf8(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  size_t i = 0;
  StopLook look;
  while (i < text.size()) {
    if (bytes[i] < 0x80) {
      uint64_t eight;
      while (i + 8 <= text.size()) {
        std::memcpy(&eight, bytes + i, 8);
        if ((eight & 0x8080808080808080u) != 0) break;
        i += 8;
      }
      while (i < text.size() && bytes[i] < 0x80) ++i;
      look.Did(1);
      continue;
    }
    size_t length;
    if (DecodeUtf8({text.data() + i, text.size() - i}, &length) < 0) return i;
    look.Did(length);
    i += length;
  }
  return std::string_view::npos;
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
