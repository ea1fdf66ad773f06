// The protobuf wire format, read exactly as protobuf's C++ parser reads it: the same bytes are
// refused, and what it lets pass (varints longer than need be, bits beyond the value's width,
// unknown fields, nested groups) passes here.
//
// Threads:  functions without state.
// Owns:     nothing.
// Limits:   every function reads inside [p, end) and returns the position behind what it read; null
//           means malformed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace penstock::wire {

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLengthDelimited = 2,
  kStartGroup = 3,
  kEndGroup = 4,
  kFixed32 = 5,
};

// Messages and groups nest at most this deep, the outermost message not counted.
inline constexpr int kDepthLimit = 100;

const uint8_t* ReadLongVarint(const uint8_t* p, const uint8_t* end, uint64_t* value);
const uint8_t* ReadLongTag(const uint8_t* p, const uint8_t* end, uint32_t* tag);
const uint8_t* ReadLongSize(const uint8_t* p, const uint8_t* end, size_t* size);

// Up to ten bytes; bits beyond the 64th are dropped.
inline const uint8_t* ReadVarint(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  if (p < end && *p < 0x80) {
    *value = *p;
    return p + 1;
  }
  return ReadLongVarint(p, end, value);
}

// A field's number and wire type. Up to five bytes; bits beyond the 32nd are dropped.
inline const uint8_t* ReadTag(const uint8_t* p, const uint8_t* end, uint32_t* tag) {
  if (p < end && *p < 0x80) {
    *tag = *p;
    return p + 1;
  }
  return ReadLongTag(p, end, tag);
}

// The size of a length-delimited field, checked to end within `end`. Up to five bytes.
inline const uint8_t* ReadSize(const uint8_t* p, const uint8_t* end, size_t* size) {
  if (p < end && *p < 0x80) {
    *size = *p++;
  } else if (end - p >= 2 && p[1] < 0x80) {
    *size = (p[0] & 0x7f) | static_cast<size_t>(p[1]) << 7;
    p += 2;
  } else {
    p = ReadLongSize(p, end, size);
    if (p == nullptr) return nullptr;
  }
  return *size <= static_cast<size_t>(end - p) ? p : nullptr;
}

// The value of a varint that fills [p, end) exactly, which is how most integers arrive: alone in a
// packed run. Does not branch on its size, which for values of either sign is 1, 2 or 10 bytes at
// random. At least 8 bytes in front of `end` must be readable. False when the bytes are anything
// but one varint.
bool ReadWholeVarint(const uint8_t* p, const uint8_t* end, uint64_t* value);

// Skips what follows the tag of an unknown field. `depth` is how many more levels may nest.
const uint8_t* SkipField(uint32_t tag, const uint8_t* p, const uint8_t* end, int depth);

// Whether the bytes are what proto3 accepts in a `string`: UTF-8 without surrogates and without
// overlong forms.
bool IsUtf8(const uint8_t* data, size_t size);
inline bool IsUtf8(std::string_view text) {
  return IsUtf8(reinterpret_cast<const uint8_t*>(text.data()), text.size());
}

}  // namespace penstock::wire
