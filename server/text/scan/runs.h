// Steps through text by classes of code points: what the scanners of published patterns are made
// of.
//
// Threads:  constant; safe from any thread.
// Cost:     a run of ASCII letters goes 16 bytes at a time.
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "server/text/unicode/classes.h"

namespace penstock::text {

struct Runs {
  explicit Runs(const uint8_t* text_end) : end(text_end), classes(Classes()) {}

  // The class at `at`; `*next` is where the next code point begins. REQUIRES: at < end.
  uint8_t At(const uint8_t* at, const uint8_t** next) const {
    const uint8_t ascii = kByteClass[*at];
    if (ascii != kNotAscii) [[likely]] {
      *next = at + 1;
      return ascii;
    }
    uint32_t code_point;
    *next = ReadCodePoint(at, &code_point);
    return classes[code_point];
  }

  // The class at `at`, 0 at the end.
  uint8_t Peek(const uint8_t* at) const {
    const uint8_t* next;
    return at < end ? At(at, &next) : 0;
  }

  // Behind all code points from `at` on that are of a class of `mask`.
  const uint8_t* Over(const uint8_t* at, uint8_t mask) const {
    while (at < end) {
      const uint8_t* next;
      if ((At(at, &next) & mask) == 0) break;
      at = next;
    }
    return at;
  }

  // The same for letters.
  const uint8_t* OverLetters(const uint8_t* at) const {
#if defined(__SSE2__)
    while (end - at >= 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
      const __m128i lower = _mm_or_si128(bytes, _mm_set1_epi8(0x20));
      // 'a' to 'z' come to lie at the low end of signed bytes.
      const __m128i moved = _mm_sub_epi8(lower, _mm_set1_epi8(static_cast<char>('a' + 128)));
      const __m128i is_letter = _mm_cmplt_epi8(moved, _mm_set1_epi8(-128 + 26));
      const auto others = ~static_cast<uint32_t>(_mm_movemask_epi8(is_letter)) & 0xffff;
      if (others == 0) {
        at += 16;
        continue;
      }
      at += std::countr_zero(others);
      if (*at < 0x80) return at;
      const uint8_t* next;
      if ((At(at, &next) & kLetter) == 0) return at;
      at = next;
    }
#endif
    return Over(at, kLetter);
  }

  // The patterns' `\s+(?!\S)|\s+`. REQUIRES: a space at `at`.
  const uint8_t* OverSpaces(const uint8_t* at) const {
    const uint8_t* last = at;  // where the last space begins
    const uint8_t* next = at;
    for (const uint8_t* i = at; i < end;) {
      if ((At(i, &next) & kSpace) == 0) {
        // One space is left for what follows, where there is more than one.
        return last == at ? i : last;
      }
      last = i;
      i = next;
    }
    return end;
  }

  // The patterns' `\s*[\r\n]+|\s+(?!\S)|\s+`; `end_first`: with `\s++$` in front.
  const uint8_t* OverSpacesOrLines(const uint8_t* at, bool end_first) const {
    const uint8_t* last = at;
    const uint8_t* behind_line = nullptr;
    const uint8_t* next = at;
    const uint8_t* i = at;
    while (i < end) {
      if ((At(i, &next) & kSpace) == 0) break;
      if (*i == '\n' || *i == '\r') behind_line = next;
      last = i;
      i = next;
    }
    if (i == end && end_first) return end;
    if (behind_line != nullptr) return behind_line;
    if (i == end) return end;
    return last == at ? i : last;
  }

  const uint8_t* OverLineEnds(const uint8_t* at, bool slashes = false) const {
    while (at < end && (*at == '\n' || *at == '\r' || (slashes && *at == '/'))) ++at;
    return at;
  }

  // `'s|'t|'re|'ve|'m|'ll|'d` at an apostrophe; `at` itself where none is there. `any_case`:
  // (?i:…), where U+017F is an s, too.
  const uint8_t* OverContraction(const uint8_t* at, bool any_case) const {
    const int64_t left = end - at;
    if (left < 2 || *at != '\'') return at;
    const uint8_t fold = any_case ? 0x20 : 0;
    const uint8_t a = at[1] | fold;
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return at + 2;
    if (left < 3) return at;
    if (any_case && at[1] == 0xc5 && at[2] == 0xbf) return at + 3;
    const uint8_t b = at[2] | fold;
    if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l')) return at + 3;
    return at;
  }

  const uint8_t* const end;
  const CodePointTable& classes;
};

}  // namespace penstock::text
