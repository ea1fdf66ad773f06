#include "server/engine/read/npy_strings.h"

#include <cstring>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

// UTF-8 of a code point; false where there is none.
bool AppendUtf8(uint32_t code, std::string* out) {
  if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
  const auto tail = [&](int shift) {
    out->push_back(static_cast<char>(0x80 | (code >> shift & 63)));
  };
  if (code < 0x80) {
    out->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out->push_back(static_cast<char>(0xc0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out->push_back(static_cast<char>(0xe0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out->push_back(static_cast<char>(0xf0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
  return true;
}

}  // namespace

absl::Status DecodeNpyStrings(const NpyHeader& header, const uint8_t* raw,
                              absl::Span<std::string> strings) {
  for (size_t i = 0; i < strings.size(); ++i, raw += header.element_bytes) {
    std::string& text = strings[i];
    text.clear();
    size_t end = header.element_bytes;
    while (end > 0 && raw[end - 1] == 0) --end;
    if (header.element == NpyElement::kBytes) {
      text.assign(reinterpret_cast<const char*>(raw), end);
      continue;
    }
    for (size_t at = 0; at < end; at += sizeof(uint32_t)) {
      uint32_t code;
      std::memcpy(&code, raw + at, sizeof(code));
      if (!AppendUtf8(code, &text)) {
        return absl::DataLossError(
            absl::StrCat("no Unicode text: code point ", code, " in element ", i, " of the row"));
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace penstock
