// Bytes as the hexadecimal digits that golden files hold.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"

namespace penstock::test {

inline std::string FromHex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16)));
  return bytes;
}

inline std::vector<uint8_t> BytesFromHex(const std::string& digits) {
  const std::string bytes = FromHex(digits);
  return {bytes.begin(), bytes.end()};
}

inline std::string ToHex(std::string_view bytes) {
  std::string digits;
  for (const char c : bytes)
    absl::StrAppend(&digits, absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
  return digits;
}

}  // namespace penstock::test
