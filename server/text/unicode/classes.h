// To which class of Unicode a code point belongs, as the regular expressions of published
// tokenizers tell them apart.
//
// Threads:  constant after the first use; safe from any thread.
// Source:   make_tables.py asks the libraries that tokenizers are published for.
// Cost:     a look-up is two loads; of ASCII one.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "server/text/unicode/utf8.h"

namespace penstock::text {

// As bits, so that a set of classes is a mask.
enum CharClass : uint8_t {
  kOther = 1 << 0,
  kUpper = 1 << 1,        // Lu, Lt
  kLower = 1 << 2,        // Ll
  kOtherLetter = 1 << 3,  // Lm, Lo
  kMark = 1 << 4,         // M
  kNumber = 1 << 5,       // N
  kSpace = 1 << 6,        // White_Space
};
inline constexpr uint8_t kLetter = kUpper | kLower | kOtherLetter;
// Of a byte that begins no ASCII character.
inline constexpr uint8_t kNotAscii = 1 << 7;

// A byte's class, or kNotAscii.
extern const std::array<uint8_t, 256> kByteClass;

// A value of 8 bits for each code point, by blocks of 256 that are kept once.
class CodePointTable {
 public:
  struct Run {
    uint32_t from;
    uint8_t value;
  };
  // Rising, from code point 0 on; each holds up to the next.
  template <size_t n>
  explicit CodePointTable(const Run (&runs)[n]) {
    Build(runs, n);
  }

  // `values`: one for each of the 0x110000 code points.
  explicit CodePointTable(const std::vector<uint8_t>& values);

  uint8_t operator[](uint32_t code_point) const {
    return values_[uint32_t{blocks_[code_point >> 8]} << 8 | (code_point & 0xff)];
  }

 private:
  void Build(const Run* runs, size_t count);

  std::array<uint16_t, 0x1100> blocks_;
  std::vector<uint8_t> values_;
};

// By CharClass.
const CodePointTable& Classes();

enum CharFlag : uint8_t {
  kBertRemoved = 1 << 0,
  kBertBlank = 1 << 1,
  kChinese = 1 << 2,
  kAccent = 1 << 3,
  kPunctuation = 1 << 4,
  kBlank = 1 << 5,  // Rust's char::is_whitespace
  kNumeric = 1 << 6,
  kWord = 1 << 7,  // \w
};
// By CharFlag.
const CodePointTable& Flags();

}  // namespace penstock::text
