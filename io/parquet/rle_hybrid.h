// Numbers of few bits, as runs of one of them or packed side by side: levels, booleans and places
// in a dictionary.
//
//   run      count << 1 (varint), the number in as few bytes as it takes
//   packed   groups << 1 | 1 (varint), 8 numbers a group, the lowest bits first
//
// Source: "Run Length Encoding / Bit-Packing Hybrid" of Encodings.md of the Apache Parquet format.
//
// Threads:  one thread.
// Owns:     nothing; it points into the bytes, each of which is read once or by values that decide
//           nothing.
// Limits:   numbers of 0 to kMaxHybridBits bits.
// Cost:     some 0.5 ns a number that is packed, less in a run; nothing for what is skipped but its
//           runs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

inline constexpr uint32_t kMaxHybridBits = 32;

class RleHybrid {
 public:
  // REQUIRES: bits <= kMaxHybridBits.
  RleHybrid(absl::Span<const uint8_t> bytes, uint32_t bits)
      : at_(bytes.data()), end_(at_ + bytes.size()), bits_(bits) {}

  // The next numbers. False where there are fewer, or the bytes are no runs.
  bool Read(uint32_t* out, size_t count);
  bool Skip(uint64_t count);

  // How many of the next `count` numbers, at most, are one and the same, which is `*number`: all
  // that is left of a run. They are taken. 0 where packed numbers are next, `*packed` of them at
  // most. False as above. REQUIRES: count > 0.
  bool TakeRun(uint64_t count, uint64_t* run, uint32_t* number, uint64_t* packed);

 private:
  // Has a run, or packed numbers, that are not used up.
  bool Next();
  void ReadPacked(uint32_t* out, size_t count);

  const uint8_t* at_;  // behind the head of the run; of packed numbers where they begin
  const uint8_t* const end_;
  const uint32_t bits_;
  bool is_packed_ = false;
  uint64_t left_ = 0;  // of the run
  uint32_t number_ = 0;
  uint64_t used_ = 0;              // of the packed numbers
  const uint8_t* next_ = nullptr;  // behind the packed numbers
};

// Unpacks numbers of `bits` bits, the lowest first, from number `first` on. REQUIRES: they all lie
// in the bytes; bits <= kMaxHybridBits.
void UnpackBits(absl::Span<const uint8_t> bytes, uint32_t bits, uint64_t first, size_t count,
                uint32_t* out);

}  // namespace penstock
