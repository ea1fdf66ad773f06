// What the bare loops over chess records share: the two layouts that ordinary writers give them,
// read by hand, and dice.
//
// Threads:  functions without state; Dice belongs to one thread.
// Owns:     nothing; a Position points into its record.
// Limits:   a record of any other layout ends the process. 64 bytes behind a record must be
//           readable.
// Cost:     some ns a record.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "bench/loop_chess_transform.h"
#include "bench/loop_records.h"

namespace penstock::bench {

// The two records that ordinary writers make, by the key that comes first; X is any size.
//   0a XX XX | 0a XX XX | 0a 01 'd' | 12 XX XX | 0a XX XX | 0a c2 01 | 194 bytes
//   0a XX | 0a 01 's' | 12 XX | 1a XX | 0a NN | varint of NN bytes
inline constexpr size_t kPlanesHeader = 15;
inline constexpr size_t kScoreHeader = 11;

inline uint64_t LoadBytes(const uint8_t* p) {
  uint64_t word;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

constexpr uint64_t Pattern(const char* bytes, const char* any) {
  uint64_t word = 0;
  for (int i = 0; i < 8; ++i) {
    word |= uint64_t{static_cast<uint8_t>(any[i] == '.' ? 0 : bytes[i])} << (8 * i);
  }
  return word;
}

constexpr uint64_t PatternMask(const char* any) {
  uint64_t mask = 0;
  for (int i = 0; i < 8; ++i) mask |= any[i] == '.' ? 0 : uint64_t{0xff} << (8 * i);
  return mask;
}

// The entry of `d`, 15 bytes and the planes, at `p`.
inline bool IsPlanesEntry(const uint8_t* p) {
  constexpr uint64_t kFirst = Pattern(
      "\x0a..\x0a\x01"
      "d\x12.",
      "=..====.");
  constexpr uint64_t kLast = Pattern("\x12..\x0a..\x0a\xc2", "=..=..==");
  return ((LoadBytes(p) & PatternMask("=..====.")) == kFirst) &
         ((LoadBytes(p + 6) & PatternMask("=..=..==")) == kLast) & (p[14] == 1);
}

// The entry of `s` up to the varint.
inline bool IsScoreEntry(const uint8_t* p) {
  constexpr uint64_t kFirst = Pattern("\x0a.\x0a\x01s\x12.\x1a", "=.====.=");
  return ((LoadBytes(p) & PatternMask("=.====.=")) == kFirst) & (p[9] == 0x0a);
}

// A varint of `size` bytes, 1 to 10, without a branch on it.
PENSTOCK_AVX2 inline int64_t ReadVarint(const uint8_t* p, size_t size) {
  const uint64_t low =
      _pext_u64(_bzhi_u64(LoadBytes(p), static_cast<unsigned>(8 * size)), 0x7f7f7f7f7f7f7f7f);
  const uint64_t high = _pext_u64(p[8] | uint64_t{p[9]} << 8, 0x017f) << 56;
  return static_cast<int64_t>(low | (high & -static_cast<uint64_t>(size == 10)));
}

// One record in the shuffle buffer.
struct Position {
  const uint8_t* planes;
  int64_t score;
};

[[noreturn]] inline void UnknownLayout() {
  Die("not a chess record", "expected the features d and s only");
}

PENSTOCK_AVX2 inline Position ParsePosition(const Record& record) {
  const uint8_t* p = record.data + 3;
  const uint8_t* planes;
  const uint8_t* score;
  const bool planes_first = p[5] == 'd';
  if (record.size < 3 + kPlanesHeader + kPlaneBytes + kScoreHeader || *record.data != 0x0a)
      [[unlikely]] {
    UnknownLayout();
  }
  if (planes_first) [[likely]] {
    planes = p;
    score = p + kPlanesHeader + kPlaneBytes;
  } else {
    score = p;
    planes = p + 2 + p[1];
  }
  const size_t varint = score[10];
  if (!IsPlanesEntry(planes) || !IsScoreEntry(score) || varint - 1 > 9 ||
      3 + kPlanesHeader + kPlaneBytes + kScoreHeader + varint != record.size) [[unlikely]] {
    UnknownLayout();
  }
  return {planes + kPlanesHeader, ReadVarint(score + kScoreHeader, varint)};
}

// SplitMix64: as good as any for a shuffle, one multiplication a draw less than most.
struct Dice {
  uint64_t state;
  uint64_t Below(uint64_t bound) {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return (z >> 32) * bound >> 32;
  }
};

}  // namespace penstock::bench
