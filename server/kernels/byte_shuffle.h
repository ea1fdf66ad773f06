// Rearranges bytes by whole vectors: sixteen bytes of the result at a time, put together of bytes
// of a few vectors of the row.
//
// Threads:  pure.
// Limits:   rows of 16 bytes and more; at most kShuffleWindowsMax windows a chunk.
// Cost:     a load, a shuffle and an OR for each window of a chunk: 16 bytes of a strided gather
//           take about a nanosecond.
#pragma once

#include <cstddef>
#include <cstdint>

namespace penstock::kernels {

inline constexpr size_t kShuffleChunk = 16;
inline constexpr size_t kShuffleWindowsMax = 6;

// One chunk of the result. Its windows lie at `base` + the pattern's offsets in the row.
struct ShuffleChunk {
  int32_t base = 0;
  int32_t pattern = 0;
};

// Many chunks share a pattern: for each of its windows an offset, and which byte of the window each
// byte of the chunk is (0x80: none of them).
struct ByteShuffleTable {
  size_t windows = 0;  // of every pattern, 1 to kShuffleWindowsMax
  size_t chunks = 0;
  const ShuffleChunk* chunk = nullptr;
  const int32_t* offset = nullptr;   // [pattern][window]
  const uint8_t* shuffle = nullptr;  // [pattern][window][kShuffleChunk]
};

// Writes 16 · table.chunks bytes. `in` and `out` need no alignment, and must not overlap.
void ShuffleBytes(const ByteShuffleTable& table, const uint8_t* in, uint8_t* out);
// The twin: the definition.
void ShuffleBytesScalar(const ByteShuffleTable& table, const uint8_t* in, uint8_t* out);

// A result whose every stretch of out_step bytes is the same choice of the sixteen bytes that lie
// in_step bytes behind those of the stretch before.
struct ByteRepeatTable {
  size_t chunks = 0;
  size_t in_first = 0;  // where the first chunk's bytes begin
  size_t in_step = 0;
  size_t out_step = 0;                  // half a vector to a whole one
  uint8_t shuffle[kShuffleChunk] = {};  // of the out_step bytes; the others do not matter
};

// Writes chunks · out_step bytes, each but the last stretch as a whole vector whose end the next
// one replaces: a cycle or two.
void RepeatBytes(const ByteRepeatTable& table, const uint8_t* in, uint8_t* out);
void RepeatBytesScalar(const ByteRepeatTable& table, const uint8_t* in, uint8_t* out);

}  // namespace penstock::kernels
