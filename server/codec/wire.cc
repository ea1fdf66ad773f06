#include "server/codec/wire.h"

namespace penstock::wire {

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
