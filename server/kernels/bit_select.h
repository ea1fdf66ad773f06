// Chooses between two constants by single bits of a byte row: out[i] = bit index[i] of the row ?
// one[i] : zero[i].
//
//   chunk c        as many outputs as a vector has bytes, or 16
//   row bytes      [ window: 16 bytes at offset[w] ]  --shuffle--> one byte for each output --mask--> its bit
//   out            one[c * chunk …] where the bit is set, zero[…] elsewhere
//
// A chunk whose bits lie further apart has several windows; a shuffle index of 0x80 or more gives a
// zero byte, and the bytes of all windows are joined. Tables describe one period of chunks; each
// further period reads `period_bytes` further on in the row and uses the same constants.
//
// Where all bits of some vectors of outputs lie in one word as large as an element, as a square's
// planes do, the word stands for the window and is spread to all lanes; vectors of bytes would have
// to be widened where there are no mask registers.
//
// Threads:  constant after construction.
// Owns:     nothing; the tables must outlive the calls.
// Limits:   rows are read in windows, up to 15 bytes beyond the last byte used.
// Cost:     about the stores: 1 to 2 ns for 64 bytes of output that stays in cache. Short periods
//           without `zero` are kept in registers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/column.h"

namespace penstock::kernels {

inline constexpr size_t kMinBitChunk = 16;
inline constexpr size_t kMaxBitChunk = 64;
// Of outputs whose bits lie in one word: their tables fill twice as many registers.
inline constexpr size_t kMaxWordVectors = 6;

struct BitSelectTable {
  size_t element_bytes = 0;          // 1, 2, 4 or 8
  size_t elements = 0;               // of a row
  size_t chunk = kMinBitChunk;       // elements; kMinBitChunk or BitSelectVectorBytes()
  size_t period_chunks = 0;          // chunks described
  size_t period_bytes = 0;           // of the row, from one period to the next
  size_t windows = 1;                // of every chunk
  const int32_t* offset = nullptr;   // [period_chunks * windows], bytes from the period's start
  const uint8_t* shuffle = nullptr;  // [period_chunks * windows * chunk]
  const uint8_t* mask = nullptr;     // [period_chunks * chunk]
  const uint8_t* one = nullptr;      // [period_chunks * chunk * element_bytes]
  const uint8_t* zero = nullptr;     // the same; null: all bytes zero
  size_t constant_period = 0;        // elements after which `one` and `zero` repeat; 0: not known
  // Outputs whose bits lie in one little-endian word of element_bytes: whole vectors,
  // kMaxWordVectors at most, of which a row has whole numbers. The next ones look the same, with
  // the same constants, in the word word_stride bytes further on. 0: not so, or `zero` is not null.
  size_t word_elements = 0;
  size_t word_offset = 0;  // of the row's first word
  size_t word_stride = 0;  // bytes
  const uint8_t* word_mask =
      nullptr;  // [word_elements * element_bytes]: the bit of each in its word
  const uint8_t* word_one = nullptr;  // [word_elements * element_bytes]
};

// Writes `rows` rows one after another. Rows are written in order, each may run over the next one's
// start, none over the last one's end.
using BitSelectKernel = void (*)(const BitSelectTable& table, const Column& in, size_t rows,
                                 uint8_t* out);
// For the current instruction set, to be kept beside the table that was built for it.
BitSelectKernel FindBitSelect();
size_t BitSelectVectorBytes();

// The scalar twin, from the definition: bit 7 - n % 8 of byte n / 8 is bit n.
void BitSelectScalar(const int32_t* index, const uint8_t* one, const uint8_t* zero, size_t elements,
                     size_t element_bytes, const Column& in, size_t rows, uint8_t* out);

}  // namespace penstock::kernels
