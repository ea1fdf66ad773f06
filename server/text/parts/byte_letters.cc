#include "server/text/parts/byte_letters.h"

#include "server/text/unicode/utf8.h"

namespace penstock::text {
namespace {

constexpr uint32_t kLettersEnd = 0x144;

bool IsPrintable(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) ||
         (byte >= 0xae && byte <= 0xff);
}

struct Tables {
  Tables() {
    bytes.fill(-1);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const uint32_t letter = IsPrintable(byte) ? byte : next++;
      AppendCodePoint(letter, &letters[byte]);
      bytes[letter] = static_cast<int16_t>(byte);
    }
  }
  std::array<std::string, 256> letters;
  std::array<int16_t, kLettersEnd> bytes;
};

const Tables& AllLetters() {
  static const auto& tables = *new Tables;
  return tables;
}

}  // namespace

const std::array<std::string, 256>& ByteLetters() { return AllLetters().letters; }

std::string ToByteLetters(std::string_view bytes) {
  std::string letters;
  letters.reserve(bytes.size() * 2);
  for (const char byte : bytes) letters += ByteLetters()[static_cast<uint8_t>(byte)];
  return letters;
}

bool AppendBytesOf(std::string_view letters, std::string* bytes) {
  const size_t before = bytes->size();
  const auto* at = reinterpret_cast<const uint8_t*>(letters.data());
  const uint8_t* const end = at + letters.size();
  while (at < end) {
    uint32_t letter = kLettersEnd;
    if (*at < 0xe0) at = ReadCodePoint(at, &letter);
    if (letter >= kLettersEnd || AllLetters().bytes[letter] < 0) {
      bytes->resize(before);
      return false;
    }
    bytes->push_back(static_cast<char>(AllLetters().bytes[letter]));
  }
  return true;
}

}  // namespace penstock::text
