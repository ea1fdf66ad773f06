// Bit choices against their definition, on every instruction set, for all lengths and element
// sizes.
#include "server/kernels/bit_select.h"

#include <algorithm>
#include <random>
#include <vector>

#include "server/kernels/gather.h"
#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

// Whether the table chooses from random rows what its definition does. The last row ends a page
// with `in_bytes`, the output another one.
bool ChoosesAsDefined(const BitSelectTable& table, const std::vector<int32_t>& index,
                      const std::vector<uint8_t>& one, const uint8_t* zero, size_t rows,
                      size_t row_bytes, size_t in_bytes, std::mt19937* random) {
  const testing::GuardedMemory data(in_bytes);
  for (size_t b = 0; b < in_bytes; ++b) data.data()[b] = static_cast<uint8_t>((*random)());
  const Column in{data.data(), row_bytes, nullptr};
  const size_t bytes = rows * table.elements * table.element_bytes;
  const testing::GuardedMemory guarded(bytes);
  std::vector<uint8_t> want(bytes);
  FindBitSelect()(table, in, rows, guarded.data());
  BitSelectScalar(index.data(), one.data(), zero, table.elements, table.element_bytes, in, rows,
                  want.data());
  return std::equal(want.begin(), want.end(), guarded.data());
}

TEST_CASE("A table of several windows chooses as the definition says") {
  std::mt19937 random(11);
  testing::ForEachInstructionSet([&](const char* set) {
    const size_t wide = BitSelectVectorBytes();
    REQUIRE((wide == 16 || wide == 32 || wide == 64));
    for (const size_t chunk : {kMinBitChunk, wide}) {
      for (const size_t element_bytes : {1, 2, 4, 8}) {
        for (size_t elements = 1; elements <= 2 * chunk + 1; ++elements) {
          for (const bool zeros : {false, true}) {
            // Any bits of the first 32 bytes: two windows at 0 and 16.
            constexpr size_t kWindows = 2;
            const size_t chunks = (elements + chunk - 1) / chunk;
            std::vector<int32_t> index(elements);
            std::vector<int32_t> offset;
            std::vector<uint8_t> shuffle(chunks * kWindows * chunk, 0x80);
            std::vector<uint8_t> mask(chunks * chunk);
            for (size_t c = 0; c < chunks; ++c) offset.insert(offset.end(), {0, 16});
            for (size_t i = 0; i < elements; ++i) {
              index[i] = static_cast<int32_t>(random() % 256);
              const size_t c = i / chunk;
              const int32_t byte = index[i] / 8;
              shuffle[(c * kWindows + byte / 16) * chunk + i % chunk] =
                  static_cast<uint8_t>(byte % 16);
              mask[i] = static_cast<uint8_t>(0x80 >> index[i] % 8);
            }
            std::vector<uint8_t> one(chunks * chunk * element_bytes);
            std::vector<uint8_t> zero(one.size());
            for (uint8_t& b : one) b = static_cast<uint8_t>(random());
            for (uint8_t& b : zero) b = static_cast<uint8_t>(random());
            BitSelectTable table;
            table.element_bytes = element_bytes;
            table.elements = elements;
            table.chunk = chunk;
            table.period_chunks = chunks;
            table.windows = kWindows;
            table.offset = offset.data();
            table.shuffle = shuffle.data();
            table.mask = mask.data();
            table.one = one.data();
            table.zero = zeros ? nullptr : zero.data();

            constexpr size_t kRows = 3, kRowBytes = 40;
            const bool same = ChoosesAsDefined(table, index, one, table.zero, kRows, kRowBytes,
                                               (kRows - 1) * kRowBytes + kWindows * 16, &random);
            CAPTURE(set, chunk, element_bytes, elements, zeros);
            REQUIRE(same);
          }
        }
      }
    }
  });
}

TEST_CASE(
    "Rows of a short period, whose tables stay in registers, are chosen as the definition says") {
  std::mt19937 random(12);
  testing::ForEachInstructionSet([&](const char* set) {
    const size_t wide = BitSelectVectorBytes();
    for (const size_t chunk : {kMinBitChunk, wide}) {
      for (const size_t element_bytes : {1, 2, 4, 8}) {
        const size_t lanes = std::min(chunk, wide / element_bytes);
        for (const size_t period_chunks : {1, 2, 3}) {
          // The last of each does not go into the registers' vectors: the general loop has to be
          // taken.
          for (const size_t constants :
               {size_t{1}, lanes, 3 * lanes / 2, 3 * lanes, 3 * lanes + 1}) {
            for (const size_t periods : {1, 5}) {
              const size_t period = period_chunks * chunk, elements = periods * period;
              constexpr size_t kPeriodBytes = 9;
              std::vector<int32_t> index(elements), offset;
              std::vector<uint8_t> shuffle(period), mask(period);
              for (size_t c = 0; c < period_chunks; ++c)
                offset.push_back(static_cast<int32_t>(c % 2));
              for (size_t i = 0; i < period; ++i) {
                const auto byte = static_cast<size_t>(random() % 8), bit = size_t{random() % 8};
                shuffle[i] = static_cast<uint8_t>(byte);
                mask[i] = static_cast<uint8_t>(0x80 >> bit);
                for (size_t n = 0; n < periods; ++n) {
                  index[n * period + i] = static_cast<int32_t>(
                      8 * (byte + static_cast<size_t>(offset[i / chunk]) + n * kPeriodBytes) + bit);
                }
              }
              std::vector<uint8_t> value(constants * element_bytes), one(period * element_bytes),
                  all(elements * element_bytes);
              for (uint8_t& b : value) b = static_cast<uint8_t>(random());
              for (size_t b = 0; b < one.size(); ++b) one[b] = value[b % value.size()];
              for (size_t b = 0; b < all.size(); ++b) all[b] = one[b % one.size()];
              BitSelectTable table;
              table.element_bytes = element_bytes;
              table.elements = elements;
              table.chunk = chunk;
              table.period_chunks = period_chunks;
              table.period_bytes = kPeriodBytes;
              table.offset = offset.data();
              table.shuffle = shuffle.data();
              table.mask = mask.data();
              table.one = one.data();
              table.constant_period = constants;

              constexpr size_t kRows = 3;
              const size_t row_bytes = periods * kPeriodBytes;
              const bool same = ChoosesAsDefined(table, index, all, nullptr, kRows, row_bytes,
                                                 kRows * row_bytes + 16, &random);
              CAPTURE(set, chunk, element_bytes, period_chunks, constants, periods);
              REQUIRE(same);
            }
          }
        }
      }
    }
  });
}

TEST_CASE("Rows whose bits lie in words are chosen as the definition says") {
  std::mt19937 random(13);
  testing::ForEachInstructionSet([&](const char* set) {
    const size_t wide = BitSelectVectorBytes();
    for (const size_t element_bytes : {4, 8}) {
      const size_t lanes = wide / element_bytes;
      for (size_t vectors = 1; vectors <= kMaxWordVectors; ++vectors) {
        for (const size_t stride : {size_t{1}, element_bytes - 1, size_t{element_bytes}}) {
          for (const size_t offset : {0, 3}) {
            const size_t count = vectors * lanes;
            // Whole chunks too, for instruction sets that use those.
            const size_t words = 2 * wide;
            const size_t elements = words * count;
            std::vector<int32_t> index(elements), chunk_offset(elements / kMinBitChunk);
            std::vector<uint8_t> shuffle(elements), bit_mask(elements),
                word_mask(count * element_bytes), word_one(count * element_bytes),
                one(elements * element_bytes);
            for (uint8_t& b : word_one) b = static_cast<uint8_t>(random());
            for (size_t i = 0; i < elements; ++i) {
              if (i < count) {
                const size_t bit = random() % (8 * element_bytes);
                index[i] = static_cast<int32_t>(8 * offset + bit);
                word_mask[i * element_bytes + bit / 8] = static_cast<uint8_t>(0x80 >> bit % 8);
              } else {
                index[i] = index[i - count] + static_cast<int32_t>(8 * stride);
              }
              std::copy_n(word_one.begin() + i % count * element_bytes, element_bytes,
                          one.begin() + i * element_bytes);
            }
            for (size_t c = 0; c < chunk_offset.size(); ++c) {
              const auto first = index.begin() + c * kMinBitChunk;
              chunk_offset[c] = *std::min_element(first, first + kMinBitChunk) / 8;
              for (size_t i = c * kMinBitChunk; i < (c + 1) * kMinBitChunk; ++i) {
                shuffle[i] = static_cast<uint8_t>(index[i] / 8 - chunk_offset[c]);
                bit_mask[i] = static_cast<uint8_t>(0x80 >> index[i] % 8);
              }
            }
            BitSelectTable table;
            table.element_bytes = element_bytes;
            table.elements = elements;
            table.chunk = kMinBitChunk;
            table.period_chunks = chunk_offset.size();
            table.offset = chunk_offset.data();
            table.shuffle = shuffle.data();
            table.mask = bit_mask.data();
            table.one = one.data();
            table.word_elements = count;
            table.word_offset = offset;
            table.word_stride = stride;
            table.word_mask = word_mask.data();
            table.word_one = word_one.data();

            constexpr size_t kRows = 3;
            const size_t row_bytes = offset + (words - 1) * stride + element_bytes;
            const bool same = ChoosesAsDefined(table, index, one, nullptr, kRows, row_bytes,
                                               kRows * row_bytes + 15, &random);
            CAPTURE(set, element_bytes, vectors, stride, offset);
            REQUIRE(same);
          }
        }
      }
    }
  });
}

TEST_CASE("A gather takes the elements it is told") {
  std::vector<uint8_t> in(64 * 8);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i * 37);
  const std::vector<int32_t> index = {5, 0, 63, 63, 17, 2, 31};
  for (const size_t size : {1, 2, 4, 8}) {
    std::vector<uint8_t> out(index.size() * size);
    Gather(in.data(), index.data(), index.size(), size, out.data());
    for (size_t i = 0; i < out.size(); ++i)
      REQUIRE(out[i] == in[index[i / size] * size + i % size]);
    const std::vector<int32_t> starts = {40, 0, 61};
    std::vector<uint8_t> runs(starts.size() * 3 * size);
    GatherRuns(in.data(), starts.data(), starts.size(), 3 * size, size, runs.data());
    for (size_t i = 0; i < runs.size(); ++i) {
      REQUIRE(runs[i] == in[starts[i / (3 * size)] * size + i % (3 * size)]);
    }
  }
}

}  // namespace
}  // namespace penstock::kernels
