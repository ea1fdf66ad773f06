// What the normalisers that go through a text by code points share.
//
// Threads:  functions without state.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "server/text/unicode/utf8.h"

namespace penstock::text {

// Makes the text that `put(code_point, its bytes, &result)` appends for each code point. REQUIRES:
// valid UTF-8.
template <typename Put>
void ChangeEach(std::string* text, Put put) {
  std::string result;
  result.reserve(text->size());
  const auto* at = reinterpret_cast<const uint8_t*>(text->data());
  const uint8_t* const end = at + text->size();
  while (at < end) {
    uint32_t code_point;
    const uint8_t* const next = ReadCodePoint(at, &code_point);
    put(code_point,
        std::string_view(reinterpret_cast<const char*>(at), static_cast<size_t>(next - at)),
        &result);
    at = next;
  }
  *text = std::move(result);
}

}  // namespace penstock::text
