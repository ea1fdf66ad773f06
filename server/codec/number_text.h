// Numbers written as text, as TensorFlow's string_to_number and decode_csv read them.
//
// Threads:  any; no state.
// Limits:   kNumberTextBytesMax bytes of a text; it looks for a stop where there are more spaces.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"
#include "base/dtype.h"

namespace penstock {

// Of a number's text, without the spaces around it: what is longer is none.
inline constexpr size_t kNumberTextBytesMax = size_t{16} << 20;

// The text without the spaces of ASCII around it, as absl::StripAsciiWhitespace(); it looks for a
// stop on the way.
absl::string_view WithoutSpaces(absl::string_view text);

// Writes the number that the whole text is, spaces around it left out, to `out`, DTypeSize(dtype)
// bytes. False where it is none, or leaves the range of an integer. int32, int64, uint32, uint64,
// float32 and float64; floats take "inf" and "nan" too.
bool ReadNumber(absl::string_view text, DType dtype, uint8_t* out);

}  // namespace penstock
