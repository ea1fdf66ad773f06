#include "base/shown_text.h"

#include <cstdint>

#include "absl/strings/str_format.h"

namespace penstock {

std::string ShownText(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    const uint8_t next = i + 1 < text.size() ? static_cast<uint8_t>(text[i + 1]) : 0;
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7f) {
      absl::StrAppendFormat(&out, "\\x%02x", byte);
    } else if (byte == 0xc2 && next >= 0x80 && next < 0xa0) {
      absl::StrAppendFormat(&out, "\\u%04x", next);
      ++i;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace penstock
