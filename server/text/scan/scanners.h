// The published patterns of pre-tokenisers, as scanners written by hand. Each has Next(), which
// returns the end of the match at `at`. All patterns match something everywhere, so that matches
// lie side by side. published.cc has the texts by which files give them.
//
// Source:   the regular expressions of GPT-2, of tiktoken's cl100k_base and o200k_base, of Llama 3
//           and of Qwen 2.
// Threads:  functions without state.
#pragma once

#include <cstdint>

#include "server/text/scan/runs.h"

namespace penstock::text {

// `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`
struct Gpt2Scanner {
  static const uint8_t* Next(const Runs& runs, const uint8_t* at) {
    constexpr uint8_t kRest = kOther | kMark;
    const uint8_t* next;
    uint8_t is = runs.At(at, &next);
    if (*at == ' ' && next < runs.end) {
      const uint8_t* const behind = next;
      const uint8_t then = runs.At(behind, &next);
      if (then & kSpace) return runs.OverSpaces(at);
      is = then;
    } else if (*at == '\'') {
      const uint8_t* const contraction = runs.OverContraction(at, false);
      if (contraction != at) return contraction;
    }
    if (is & kLetter) return runs.OverLetters(next);
    if (is & kNumber) return runs.Over(next, kNumber);
    if (is & kSpace) return runs.OverSpaces(at);
    return runs.Over(next, kRest);
  }
};

// `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,digits}|
// ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`
template <int digits, bool end_first>
struct WordScanner {
  static const uint8_t* Next(const Runs& runs, const uint8_t* at) {
    constexpr uint8_t kRest = kOther | kMark;
    const uint8_t* next;
    const uint8_t is = runs.At(at, &next);
    if (is & kLetter) return runs.OverLetters(next);
    if (is & kNumber) {
      for (int i = 1; i < digits && next < runs.end; ++i) {
        const uint8_t* behind;
        if ((runs.At(next, &behind) & kNumber) == 0) break;
        next = behind;
      }
      return next;
    }
    if (*at == '\'') {
      const uint8_t* const contraction = runs.OverContraction(at, true);
      if (contraction != at) return contraction;
    }
    uint8_t then = 0;
    const uint8_t* behind = next;
    if (next < runs.end) then = runs.At(next, &behind);
    if ((then & kLetter) && *at != '\n' && *at != '\r') return runs.OverLetters(behind);
    if (is & kSpace) {
      if (*at == ' ' && (then & kRest)) return runs.OverLineEnds(runs.Over(behind, kRest));
      return runs.OverSpacesOrLines(at, end_first);
    }
    return runs.OverLineEnds(runs.Over(next, kRest));
  }
};

// tiktoken's o200k_base.
struct O200kScanner {
  // `[upper]*[lower]+` or else `[upper]+[lower]*`, where letters of no case and marks are both;
  // null where neither matches.
  static const uint8_t* Word(const Runs& runs, const uint8_t* at) {
    constexpr uint8_t kBoth = kOtherLetter | kMark;
    const uint8_t* behind_both = nullptr;
    const uint8_t* i = at;
    while (i < runs.end) {
      const uint8_t* next;
      const uint8_t is = runs.At(i, &next);
      if (is & kLower) return runs.Over(next, kLower | kBoth);
      if ((is & (kUpper | kBoth)) == 0) break;
      if (is & kBoth) behind_both = next;
      i = next;
    }
    if (behind_both != nullptr) return behind_both;
    return nullptr;
  }
  static const uint8_t* Next(const Runs& runs, const uint8_t* at) {
    constexpr uint8_t kRest = kOther | kMark;
    constexpr uint8_t kWordClasses = kLetter | kMark;
    const uint8_t* next;
    const uint8_t is = runs.At(at, &next);
    if (is & kNumber) {
      for (int i = 1; i < 3 && next < runs.end; ++i) {
        const uint8_t* behind;
        if ((runs.At(next, &behind) & kNumber) == 0) break;
        next = behind;
      }
      return next;
    }
    const bool may_lead = (is & kLetter) == 0 && *at != '\n' && *at != '\r';
    const uint8_t* word = nullptr;
    if (may_lead) word = Word(runs, next);
    if (word == nullptr && (is & kWordClasses)) word = Word(runs, at);
    // The second form: upper case alone.
    if (word == nullptr && may_lead && (runs.Peek(next) & kUpper)) word = runs.Over(next, kUpper);
    if (word == nullptr && (is & kUpper)) word = runs.Over(next, kUpper);
    if (word != nullptr) return runs.OverContraction(word, true);
    if (is & kSpace) {
      const uint8_t* behind = next;
      if (*at == ' ' && next < runs.end && (runs.At(next, &behind) & kRest))
        return runs.OverLineEnds(runs.Over(behind, kRest), true);
      return runs.OverSpacesOrLines(at, false);
    }
    return runs.OverLineEnds(runs.Over(next, kRest), true);
  }
};

using Cl100kScanner = WordScanner<3, true>;
using Llama3Scanner = WordScanner<3, false>;
using Qwen2Scanner = WordScanner<1, false>;

}  // namespace penstock::text
