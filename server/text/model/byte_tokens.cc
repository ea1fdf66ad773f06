#include "server/text/model/byte_tokens.h"

#include <cctype>

namespace penstock::text {

bool AppendBytes(const ByteTokens& tokens, std::string_view text, IdBuffer& out) {
  for (const char c : text)
    if (!tokens[static_cast<uint8_t>(c)]) return false;
  for (const char c : text) out.Append(*tokens[static_cast<uint8_t>(c)]);
  return true;
}

int ByteOfToken(std::string_view token) {
  if (token.size() != 6 || token.substr(0, 3) != "<0x" || token[5] != '>') return -1;
  int byte = 0;
  for (const char c : token.substr(3, 2)) {
    if (!std::isxdigit(static_cast<unsigned char>(c))) return -1;
    byte = byte * 16 + (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
  }
  return byte;
}

}  // namespace penstock::text
