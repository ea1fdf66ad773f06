#include "server/kernels/byte_shuffle.h"

#include <cstdlib>
#include <cstring>

// Before highway's own headers.
#include "server/kernels/targets.h"

#include "hwy/highway.h"

// A chunk is one vector of the least instruction set. Wider ones shuffle inside such vectors too,
// so this is compiled once.
HWY_BEFORE_NAMESPACE();
namespace penstock::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <size_t kWindows>
void Shuffle(const ByteShuffleTable& table, const uint8_t* HWY_RESTRICT in,
             uint8_t* HWY_RESTRICT out) {
  const hn::FixedTag<uint8_t, kShuffleChunk> d;
  for (size_t i = 0; i < table.chunks; ++i, out += kShuffleChunk) {
    const uint8_t* const from = in + table.chunk[i].base;
    const size_t first = static_cast<size_t>(table.chunk[i].pattern) * kWindows;
    auto bytes = hn::Zero(d);
    for (size_t w = 0; w < kWindows; ++w) {
      const auto window = hn::LoadU(d, from + table.offset[first + w]);
      const auto order = hn::LoadU(d, table.shuffle + (first + w) * kShuffleChunk);
      bytes = hn::Or(bytes, hn::TableLookupBytesOr0(window, order));
    }
    hn::StoreU(bytes, d, out);
  }
}

void Repeat(const ByteRepeatTable& table, const uint8_t* HWY_RESTRICT in,
            uint8_t* HWY_RESTRICT out) {
  if (table.chunks == 0) return;
  const hn::FixedTag<uint8_t, kShuffleChunk> d;
  const auto order = hn::LoadU(d, table.shuffle);
  const size_t in_step = table.in_step, out_step = table.out_step;
  in += table.in_first;
#pragma GCC unroll 4
  for (size_t i = table.chunks - 1; i > 0; --i, in += in_step, out += out_step)
    hn::StoreU(hn::TableLookupBytesOr0(hn::LoadU(d, in), order), d, out);
  HWY_ALIGN uint8_t last[kShuffleChunk];
  hn::Store(hn::TableLookupBytesOr0(hn::LoadU(d, in), order), d, last);
  std::memcpy(out, last, out_step);
}

}  // namespace HWY_NAMESPACE

void RepeatBytes(const ByteRepeatTable& table, const uint8_t* in, uint8_t* out) {
  HWY_NAMESPACE::Repeat(table, in, out);
}

void RepeatBytesScalar(const ByteRepeatTable& table, const uint8_t* in, uint8_t* out) {
  for (size_t i = 0; i < table.chunks; ++i) {
    for (size_t byte = 0; byte < table.out_step; ++byte) {
      const uint8_t order = table.shuffle[byte];
      out[i * table.out_step + byte] =
          order >= 0x80 ? 0 : in[table.in_first + i * table.in_step + order];
    }
  }
}

void ShuffleBytes(const ByteShuffleTable& table, const uint8_t* in, uint8_t* out) {
  using namespace HWY_NAMESPACE;  // NOLINT: the one set that this file is compiled for
  switch (table.windows) {
    case 1:
      return Shuffle<1>(table, in, out);
    case 2:
      return Shuffle<2>(table, in, out);
    case 3:
      return Shuffle<3>(table, in, out);
    case 4:
      return Shuffle<4>(table, in, out);
    case 5:
      return Shuffle<5>(table, in, out);
    case 6:
      return Shuffle<6>(table, in, out);
    default:
      std::abort();
  }
}

void ShuffleBytesScalar(const ByteShuffleTable& table, const uint8_t* in, uint8_t* out) {
  for (size_t i = 0; i < table.chunks; ++i) {
    const size_t first = static_cast<size_t>(table.chunk[i].pattern) * table.windows;
    for (size_t byte = 0; byte < kShuffleChunk; ++byte) {
      uint8_t value = 0;
      for (size_t w = 0; w < table.windows; ++w) {
        const uint8_t order = table.shuffle[(first + w) * kShuffleChunk + byte];
        if (order >= 0x80) continue;
        value |= in[table.chunk[i].base + table.offset[first + w] + order];
      }
      out[i * kShuffleChunk + byte] = value;
    }
  }
}

}  // namespace penstock::kernels
HWY_AFTER_NAMESPACE();
