#include "server/codec/wire.h"

#include <array>
#include <cstring>

namespace penstock::wire {
namespace {

constexpr uint64_t kContinues = 0x8080808080808080;

// How to take a varint of a known size apart: `word` is its first eight bytes, or as many as there
// are, and `last` its ninth and tenth.
struct VarintForm {
  uint64_t word_continues = 0;  // the continuation bits that must be set in `word`, and no others
  uint8_t word_offset = 8;      // where to load it, in front of the end
  uint8_t word_shift = 0;
  uint8_t last_shift = 0;  // of the eight bytes in front of the end
  uint16_t last_mask = 0;
  uint16_t last_continues = 0;
};

constexpr std::array<VarintForm, 11> kVarintForms = [] {
  std::array<VarintForm, 11> forms;
  for (int size = 1; size <= 8; ++size) {
    forms[size].word_shift = 64 - 8 * size;
    forms[size].word_continues = size == 1 ? 0 : kContinues >> (72 - 8 * size);
  }
  for (int size = 9; size <= 10; ++size) {
    forms[size].word_continues = kContinues;
    forms[size].word_offset = size;
    forms[size].last_shift = (16 - size) * 8;
    forms[size].last_mask = size == 9 ? 0xff : 0xffff;
    forms[size].last_continues = size == 9 ? 0 : 0x80;
  }
  return forms;
}();

}  // namespace

const uint8_t* ReadLongVarint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  uint64_t result = 0;
  for (int i = 0; i < 10 && p < end; ++i) {
    const uint64_t byte = *p++;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *value = result;
      return p;
    }
  }
  return nullptr;
}

const uint8_t* ReadLongTag(const uint8_t* p, const uint8_t* end, uint32_t* tag) {
  uint32_t result = 0;
  for (int i = 0; i < 5 && p < end; ++i) {
    const uint32_t byte = *p++;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *tag = result;
      return p;
    }
  }
  return nullptr;
}

const uint8_t* ReadLongSize(const uint8_t* p, const uint8_t* end, size_t* size) {
  // Protobuf keeps sizes this far below 2 GiB, the reach of its read-ahead.
  constexpr size_t kSizeMax = 0x7fffffff - 16;
  size_t result = 0;
  for (int i = 0; i < 5 && p < end; ++i) {
    const size_t byte = *p++;
    if (i == 4 && byte >= 8) return nullptr;
    result |= (byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      if (i == 4 && result > kSizeMax) return nullptr;
      *size = result;
      return p;
    }
  }
  return nullptr;
}

bool ReadWholeVarint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  const size_t size = end - p;
  if (size - 1 >= 10) return false;
  const VarintForm& form = kVarintForms[size];
  uint64_t word, last;
  std::memcpy(&word, end - form.word_offset, sizeof(word));
  std::memcpy(&last, end - 8, sizeof(last));
  word >>= form.word_shift;
  last = last >> form.last_shift & form.last_mask;
  if ((word & kContinues) != form.word_continues || (last & 0x8080) != form.last_continues) {
    return false;
  }
  // Eight groups of seven bits, joined in pairs, then pairs of pairs, then the two halves.
  word &= ~kContinues;
  word = (word & 0x007f007f007f007f) | (word & 0x7f007f007f007f00) >> 1;
  word = (word & 0x00003fff00003fff) | (word & 0x3fff00003fff0000) >> 2;
  word = (word & 0x000000000fffffff) | (word & 0x0fffffff00000000) >> 4;
  *value = word | (last & 0x7f) << 56 | (last >> 8) << 63;
  return true;
}

const uint8_t* SkipField(uint32_t tag, const uint8_t* p, const uint8_t* end, int depth) {
  if (tag >> 3 == 0) return nullptr;
  switch (tag & 7) {
    case kVarint: {
      uint64_t value;
      return ReadVarint(p, end, &value);
    }
    case kFixed64:
      return end - p >= 8 ? p + 8 : nullptr;
    case kFixed32:
      return end - p >= 4 ? p + 4 : nullptr;
    case kLengthDelimited: {
      size_t size;
      p = ReadSize(p, end, &size);
      return p != nullptr ? p + size : nullptr;
    }
    case kStartGroup: {
      if (depth == 0) return nullptr;
      for (;;) {
        uint32_t inner;
        p = ReadTag(p, end, &inner);
        if (p == nullptr) return nullptr;
        if ((inner & 7) == kEndGroup) return inner == tag + 1 ? p : nullptr;
        p = SkipField(inner, p, end, depth - 1);
        if (p == nullptr) return nullptr;
      }
    }
    default:
      return nullptr;
  }
}

bool IsUtf8(const uint8_t* data, size_t size) {
  const uint8_t* const end = data + size;
  const auto continues = [](uint8_t byte) { return (byte & 0xc0) == 0x80; };
  while (data < end) {
    const uint8_t first = *data;
    const size_t left = end - data;
    if (first < 0x80) {
      data += 1;
    } else if (first >= 0xc2 && first <= 0xdf) {
      if (left < 2 || !continues(data[1])) return false;
      data += 2;
    } else if (first >= 0xe0 && first <= 0xef) {
      if (left < 3 || !continues(data[1]) || !continues(data[2])) return false;
      if (first == 0xe0 && data[1] < 0xa0) return false;   // overlong
      if (first == 0xed && data[1] >= 0xa0) return false;  // surrogates
      data += 3;
    } else if (first >= 0xf0 && first <= 0xf4) {
      if (left < 4 || !continues(data[1]) || !continues(data[2]) || !continues(data[3])) {
        return false;
      }
      if (first == 0xf0 && data[1] < 0x90) return false;   // overlong
      if (first == 0xf4 && data[1] >= 0x90) return false;  // beyond U+10FFFF
      data += 4;
    } else {
      return false;
    }
  }
  return true;
}

}  // namespace penstock::wire
