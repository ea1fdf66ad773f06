#include "server/codec/number_text.h"

#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/charconv.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/in_pieces.h"

namespace penstock {
namespace {

template <typename T>
bool Put(bool found, T value, uint8_t* out) {
  if (found) std::memcpy(out, &value, sizeof(value));
  return found;
}

template <typename T>
bool ReadInteger(absl::string_view text, uint8_t* out) {
  T value = 0;
  const bool found = absl::SimpleAtoi(text, &value);
  return Put(found, value, out);
}

template <typename T>
bool ReadFloat(absl::string_view text, bool found, T value, uint8_t* out) {
  if (found) return Put(true, value, out);
  // Hexadecimal ones, which SimpleAtof does not take.
  text = absl::StripAsciiWhitespace(text);
  const bool negative = absl::ConsumePrefix(&text, "-");
  if (!negative) absl::ConsumePrefix(&text, "+");
  if (!absl::ConsumePrefix(&text, "0x") && !absl::ConsumePrefix(&text, "0X")) return false;
  if (text.empty() || text.front() == '-') return false;
  const char* const end = text.data() + text.size();
  const absl::from_chars_result result =
      absl::from_chars(text.data(), end, value, absl::chars_format::hex);
  return Put(result.ec == std::errc() && result.ptr == end, negative ? -value : value, out);
}

}  // namespace

absl::string_view WithoutSpaces(absl::string_view text) {
  const auto is_other = [](char c) { return !absl::ascii_isspace(static_cast<uint8_t>(c)); };
  text.remove_prefix(FindInPieces(text, 0, is_other));
  StopLook look;
  while (!text.empty() && !is_other(text.back())) {
    text.remove_suffix(1);
    look.Did(1);
  }
  return text;
}

bool ReadNumber(absl::string_view text, DType dtype, uint8_t* out) {
  // What is behind this look at all of it at once, more than once.
  text = WithoutSpaces(text);
  if (text.size() > kNumberTextBytesMax) return false;
  switch (dtype) {
    case DType::kInt32:
      return ReadInteger<int32_t>(text, out);
    case DType::kInt64:
      return ReadInteger<int64_t>(text, out);
    case DType::kUint32:
      return ReadInteger<uint32_t>(text, out);
    case DType::kUint64:
      return ReadInteger<uint64_t>(text, out);
    case DType::kFloat32: {
      float value = 0;
      const bool found = absl::SimpleAtof(text, &value);
      return ReadFloat(text, found, value, out);
    }
    case DType::kFloat64: {
      double value = 0;
      const bool found = absl::SimpleAtod(text, &value);
      return ReadFloat(text, found, value, out);
    }
    default:
      return false;
  }
}

}  // namespace penstock
