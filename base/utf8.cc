#include "base/utf8.h"

#include "absl/strings/escaping.h"
#include "base/stop_flag.h"

namespace penstock {
namespace {

// As many bytes as ReplaceNoUtf8() copies at once, at least: between two looks for a stop.
constexpr size_t kCopiedBytes = size_t{64} << 10;

}  // namespace

int32_t DecodeUtf8(absl::string_view text, size_t* bytes) {
  const auto first = static_cast<unsigned char>(text[0]);
  *bytes = 1;
  if (first < 0x80) return first;
  // How many bytes follow, and what the first of them may be.
  size_t more = 0;
  unsigned char low = 0x80, high = 0xbf;
  int32_t code = 0;
  if (first >= 0xc2 && first <= 0xdf) {
    more = 1;
    code = first & 0x1f;
  } else if (first >= 0xe0 && first <= 0xef) {
    more = 2;
    code = first & 0x0f;
    if (first == 0xe0) low = 0xa0;   // not in more bytes than it needs
    if (first == 0xed) high = 0x9f;  // no surrogate
  } else if (first >= 0xf0 && first <= 0xf4) {
    more = 3;
    code = first & 0x07;
    if (first == 0xf0) low = 0x90;
    if (first == 0xf4) high = 0x8f;  // up to U+10FFFF
  } else {
    return -1;
  }
  for (size_t i = 1; i <= more; ++i) {
    if (i == text.size()) return -1;
    const auto next = static_cast<unsigned char>(text[i]);
    if (next < low || next > high) return -1;
    low = 0x80;
    high = 0xbf;
    code = code << 6 | (next & 0x3f);
    ++*bytes;
  }
  return code;
}

std::string ReplaceNoUtf8(absl::string_view text) {
  std::string replaced;
  replaced.reserve(text.size());
  StopLook look;
  const char* kept = text.data();
  const auto copy_to = [&](const char* end) {
    look.Did(end - kept);
    replaced.append(kept, end);
    kept = end;
  };
  while (!text.empty()) {
    size_t bytes = 0;
    const bool is_character = DecodeUtf8(text, &bytes) >= 0;
    if (!is_character || static_cast<size_t>(text.data() - kept) >= kCopiedBytes)
      copy_to(text.data());
    text.remove_prefix(bytes);
    if (!is_character) {
      replaced += "\xef\xbf\xbd";
      kept = text.data();
      look.Did(bytes);
    }
  }
  copy_to(text.data());
  return replaced;
}

std::string ReadableUtf8(absl::string_view text, size_t bytes_max) {
  std::string readable;
  while (!text.empty()) {
    size_t bytes = 0;
    const bool is_character = DecodeUtf8(text, &bytes) >= 0;
    const absl::string_view found = text.substr(0, bytes);
    const std::string shown = is_character ? std::string(found) : absl::CHexEscape(found);
    if (shown.size() > bytes_max - readable.size()) break;
    readable += shown;
    text.remove_prefix(bytes);
  }
  return readable;
}

}  // namespace penstock
