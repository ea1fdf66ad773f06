// Rearrangements with nothing to read or write behind their rows.
#include "server/kernels/gather.h"

#include <algorithm>
#include <vector>

#include "server/kernels/byte_shuffle.h"
#include "server/kernels/pixel_planes.h"
#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;

uint8_t ByteAt(size_t i) { return static_cast<uint8_t>(i * 167 + i / 256); }

TEST_CASE("A transposed matrix has rows for columns, whatever its sides") {
  testing::ForEachInstructionSet([](const char* name) {
    for (const size_t size : {1, 2, 4, 8}) {
      for (const size_t columns : {2, 3, 4, 7, 16, 17, 65}) {
        for (size_t rows = 1; rows <= 70; rows += rows < 20 ? 1 : 11) {
          CAPTURE(name, size, columns, rows);
          const size_t bytes = rows * columns * size;
          const GuardedMemory in(bytes), out(bytes);
          for (size_t i = 0; i < bytes; ++i) in.data()[i] = ByteAt(i);
          Transpose(in.data(), rows, columns, size, out.data());
          bool same = true;
          for (size_t r = 0; r < rows; ++r) {
            for (size_t c = 0; c < columns; ++c) {
              for (size_t b = 0; b < size; ++b) {
                same &=
                    out.data()[(c * rows + r) * size + b] == ByteAt((r * columns + c) * size + b);
              }
            }
          }
          REQUIRE(same);
        }
      }
    }
  });
}

TEST_CASE("Planes of pixels have their bytes, on every instruction set and at every length") {
  testing::ForEachInstructionSet([](const char* name) {
    for (size_t pixels = 1; pixels <= 200; ++pixels) {
      CAPTURE(name, pixels);
      const GuardedMemory in(3 * pixels), out(3 * pixels);
      for (size_t i = 0; i < 3 * pixels; ++i) in.data()[i] = ByteAt(i);
      SplitThreePlanes(in.data(), pixels, out.data());
      bool same = true;
      for (size_t i = 0; i < 3 * pixels; ++i)
        same &= out.data()[i % 3 * pixels + i / 3] == ByteAt(i);
      REQUIRE(same);
    }
  });
}

TEST_CASE("Shuffled bytes are those of the scalar twin, for every number of windows") {
  for (size_t windows = 1; windows <= kShuffleWindowsMax; ++windows) {
    constexpr size_t kBytes = 200, kPatterns = 3;
    const GuardedMemory in(kBytes);
    for (size_t i = 0; i < kBytes; ++i) in.data()[i] = ByteAt(i);
    std::vector<int32_t> offset;
    std::vector<uint8_t> shuffle;
    for (size_t p = 0; p < kPatterns; ++p) {
      for (size_t w = 0; w < windows; ++w) offset.push_back(static_cast<int32_t>(w * 13 + p));
      for (size_t w = 0; w < windows; ++w) {
        for (size_t b = 0; b < kShuffleChunk; ++b) {
          // Each byte comes from one window.
          const bool here = (b + p) % windows == w;
          shuffle.push_back(here ? static_cast<uint8_t>((b * 5 + w) % kShuffleChunk) : 0x80);
        }
      }
    }
    for (size_t chunks = 0; chunks <= 9; ++chunks) {
      std::vector<ShuffleChunk> chunk;
      for (size_t i = 0; i < chunks; ++i) {
        // The last window of the last pattern ends where the row does.
        const size_t reach = (windows - 1) * 13 + kPatterns - 1 + kShuffleChunk;
        chunk.push_back({static_cast<int32_t>(i + 1 == chunks ? kBytes - reach : i * 7),
                         static_cast<int32_t>(i + 1 == chunks ? kPatterns - 1 : i % kPatterns)});
      }
      const ByteShuffleTable table{windows, chunks, chunk.data(), offset.data(), shuffle.data()};
      const GuardedMemory out(chunks * kShuffleChunk);
      std::vector<uint8_t> twin(chunks * kShuffleChunk);
      ShuffleBytes(table, in.data(), out.data());
      ShuffleBytesScalar(table, in.data(), twin.data());
      CAPTURE(windows, chunks);
      REQUIRE(std::equal(twin.begin(), twin.end(), out.data()));
    }
  }
}

TEST_CASE("Repeated choices of bytes are those of the scalar twin, and touch nothing else") {
  for (size_t out_step = kShuffleChunk / 2; out_step <= kShuffleChunk; ++out_step) {
    for (const size_t in_step : {1, 5, 15, 16, 48}) {
      for (size_t chunks = 0; chunks <= 9; ++chunks) {
        CAPTURE(out_step, in_step, chunks);
        ByteRepeatTable table{chunks, 2, in_step, out_step, {}};
        for (size_t b = 0; b < kShuffleChunk; ++b)
          table.shuffle[b] = static_cast<uint8_t>(b % 7 == 6 ? 0x80 : b * 5 % kShuffleChunk);
        const size_t in_bytes = chunks == 0 ? 1 : 2 + (chunks - 1) * in_step + kShuffleChunk;
        const GuardedMemory in(in_bytes), out(chunks * out_step), want(chunks * out_step);
        for (size_t i = 0; i < in_bytes; ++i) in.data()[i] = ByteAt(i);
        RepeatBytes(table, in.data(), out.data());
        RepeatBytesScalar(table, in.data(), want.data());
        REQUIRE(std::equal(out.data(), out.data() + chunks * out_step, want.data()));
      }
    }
  }
}

}  // namespace
}  // namespace penstock::kernels
