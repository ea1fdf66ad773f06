// Bytes written as letters, as GPT-2's vocabulary has them: each of the 256 has a printable code
// point of its own below U+0144.
//
// Threads:  constant.
// Source:   bytes_to_unicode() of GPT-2's encoder.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace penstock::text {

// The letter of each byte, in UTF-8.
const std::array<std::string, 256>& ByteLetters();

std::string ToByteLetters(std::string_view bytes);

// Appends the bytes that a text of such letters stands for; false, and nothing is appended, where
// another character is in it.
bool AppendBytesOf(std::string_view letters, std::string* bytes);

}  // namespace penstock::text
