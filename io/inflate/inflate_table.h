// The two codes of a block of deflate (RFC 1951), and a table in which one look finds what most
// bits begin with: a literal or two, or a length and its distance together.
//
// Threads:  const calls from any.
// Cost:     51 KiB; making one takes about two microseconds, for blocks that have some 16,000
//           symbols as zlib writes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"
#include "io/inflate/entries_behind.h"
#include "io/inflate/huffman_code.h"

namespace penstock {

class InflateTable {
 public:
  static constexpr uint32_t kIndexBits = HuffmanCode::kDirectBits;
  static constexpr size_t kNumEntries = size_t{1} << kIndexBits;

  // An entry:
  //
  //   63         62         61           56..61     40..55        24..39          16..23       8..15       0..7
  //   +----------+----------+------------+--------+-------------+---------------+------------+-----------+-----------+
  //   | kSpecial | kLiteral | kHasLength | length | literals or | distance base | extra bits | first one | bits used |
  //   |          |          |            |        | long length |               |            |           |           |
  //   +----------+----------+------------+--------+-------------+---------------+------------+-----------+-----------+
  //
  // Literals: one or two, the first one lower, and `length` is how many; the distance is
  // kLiteralDistance.
  // A match: `length` bytes, at most kCopyBytes, from as far back as the distance's base and its
  // extra bits say, which are those from the `first one` on. The length's own extra bits are a part
  // of the index. With kSpecial there is no such entry. With kHasLength the long length is it, of
  // up to 258 bytes, with the bits that it took, and a distance follows; without, not even that is
  // known (a long code, the end of the block, or no code).
  static constexpr uint64_t kSpecial = uint64_t{1} << 63;
  static constexpr uint64_t kLiteral = uint64_t{1} << 62;
  static constexpr uint64_t kHasLength = uint64_t{1} << 61;
  static constexpr uint32_t kExtraShift = 8;  // of both, as the instruction BEXTR has them
  static constexpr uint32_t kDistanceShift = 24;
  static constexpr uint32_t kLiteralsShift = 40;
  static constexpr uint32_t kLongLengthShift = 40;
  static constexpr uint32_t kLengthShift = 56;
  static constexpr uint32_t kLengthMask = 63;

  static constexpr uint32_t kCopyBytes = 32;
  // No match, and no less than the number of literals.
  static constexpr uint32_t kLiteralDistance = 2;

  // From the lengths of the codes of literals and lengths (at most 288) and of distances (at most
  // 32). False where one of the codes is none (HuffmanCode::Build).
  bool Build(absl::Span<const uint8_t> literal_bits, absl::Span<const uint8_t> distance_bits);

  // By the next kIndexBits bits.
  const uint64_t* entries() const { return entries_; }
  // Where a length is known: the entry of a distance by the next bits, kSpecial where it takes more
  // of them than these.
  uint64_t DistanceEntry(uint64_t bits) const {
    constexpr uint32_t kRoom = EntriesBehind::kRoomMax;
    return behind_length_.ByNextBits(kRoom)[bits & ((uint64_t{1} << kRoom) - 1)];
  }
  const HuffmanCode& literals() const { return literals_; }
  const HuffmanCode& distances() const { return distances_; }

 private:
  void AddLiterals();
  void AddMatches();

  // A whole copy from an entry's literals stays inside.
  alignas(64) uint64_t entries_[kNumEntries + kCopyBytes / sizeof(uint64_t)];
  HuffmanCode literals_;
  HuffmanCode distances_;
  EntriesBehind behind_length_;
};

}  // namespace penstock
