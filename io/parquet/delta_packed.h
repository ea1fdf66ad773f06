// Whole numbers as packed differences of neighbours: the encoding DELTA_BINARY_PACKED.
//
//   head    values of a block, miniblocks of a block, values in all (varints), first value (zigzag varint)
//   block   least difference (zigzag varint), bits of each miniblock (a byte each), miniblocks: difference - least, the lowest bits first
//
// Source: "Delta Encoding" of Encodings.md of the Apache Parquet format. Sums wrap around.
//
// Threads:  one thread.
// Owns:     nothing; it points into the bytes.
// Limits:   miniblocks of kMaxDeltaMiniblock numbers, kMaxDeltaMiniblocks of them a block.
// Cost:     some 1 ns a number, skipped ones, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace penstock {

inline constexpr uint64_t kMaxDeltaMiniblock = uint64_t{1} << 20;
inline constexpr uint64_t kMaxDeltaMiniblocks = 512;

class DeltaPacked {
 public:
  explicit DeltaPacked(absl::Span<const uint8_t> bytes)
      : at_(bytes.data()), end_(at_ + bytes.size()) {}

  // Reads the head. False where there is none.
  bool Begin();
  uint64_t num_values() const { return num_values_; }

  // The next numbers. False where there are fewer, or the bytes are none.
  bool Read(int64_t* out, size_t count);
  bool Skip(uint64_t count);

  // Behind the last number. REQUIRES: all were read.
  const uint8_t* end() const;

 private:
  bool Varint(uint64_t* value);
  bool Zigzag(int64_t* value);
  bool NextBlock();
  bool NextMiniblock();

  const uint8_t* at_;  // behind what was read; of a miniblock where it begins
  const uint8_t* const end_;
  uint64_t miniblock_ = 0;   // numbers of one
  uint64_t miniblocks_ = 0;  // of a block
  uint64_t num_values_ = 0;
  uint64_t done_ = 0;  // numbers that were read
  uint64_t last_ = 0;  // the last of them, or the first if there is none
  // Of the block and of the miniblock.
  uint64_t least_ = 0;
  const uint8_t* all_bits_ = nullptr;
  uint64_t which_ = 0;  // the miniblock, in its block; behind the last: miniblocks_
  uint32_t bits_ = 0;
  uint64_t used_ = 0;  // numbers of the miniblock
  uint64_t miniblock_bytes_ = 0;
};

}  // namespace penstock
