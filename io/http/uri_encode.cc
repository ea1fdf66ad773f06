#include "io/http/uri_encode.h"

#include "absl/strings/ascii.h"

namespace penstock {
namespace {

std::string Encode(absl::string_view text, bool keeps_slash) {
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string encoded;
  encoded.reserve(text.size());
  for (const char letter : text) {
    const bool stays = absl::ascii_isalnum(letter) || letter == '-' || letter == '_' ||
                       letter == '.' || letter == '~' || (keeps_slash && letter == '/');
    if (stays) {
      encoded += letter;
      continue;
    }
    encoded += '%';
    encoded += kDigits[static_cast<uint8_t>(letter) >> 4];
    encoded += kDigits[static_cast<uint8_t>(letter) & 15];
  }
  return encoded;
}

int Digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  return -1;
}

}  // namespace

std::string EncodePath(absl::string_view path) { return Encode(path, /*keeps_slash=*/true); }
std::string EncodeQuery(absl::string_view value) { return Encode(value, /*keeps_slash=*/false); }

std::string DecodeUri(absl::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && Digit(text[i + 1]) >= 0 &&
        Digit(text[i + 2]) >= 0) {
      decoded += static_cast<char>(Digit(text[i + 1]) * 16 + Digit(text[i + 2]));
      i += 2;
    } else if (text[i] == '+' && plus_is_space) {
      decoded += ' ';
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

}  // namespace penstock
