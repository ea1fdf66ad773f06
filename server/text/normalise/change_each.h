// What the normalisers that go through a text by code points share.
//
// Threads:  functions without state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/stop_flag.h"
#include "server/text/unicode/utf8.h"

namespace penstock::text {

// How many bytes of a text are gone through between two looks for a stop.
inline constexpr ptrdiff_t kStretchBytes = 1 << 16;

// Makes the text that `put(code_point, its bytes, &result)` appends for each code point. REQUIRES:
// valid UTF-8.
template <typename Put>
void ChangeEach(std::string* text, Put put) {
  std::string result;
  result.reserve(text->size());
  const auto* at = reinterpret_cast<const uint8_t*>(text->data());
  const uint8_t* const end = at + text->size();
  while (at < end) {
    CheckStop();
    const uint8_t* const stretch = end - at > kStretchBytes ? at + kStretchBytes : end;
    while (at < stretch) {
      uint32_t code_point;
      const uint8_t* const next = ReadCodePoint(at, &code_point);
      put(code_point,
          std::string_view(reinterpret_cast<const char*>(at), static_cast<size_t>(next - at)),
          &result);
      at = next;
    }
  }
  *text = std::move(result);
}

}  // namespace penstock::text
