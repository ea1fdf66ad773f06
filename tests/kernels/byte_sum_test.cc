// Sums of bytes against their scalar twins, on every instruction set, at all tail lengths, with
// nothing to read or write around them.
#include "server/kernels/byte_sum.h"

#include <algorithm>
#include <deque>
#include <random>
#include <vector>

#include "tests/support/catch.h"
#include "tests/support/guarded_memory.h"
#include "tests/support/instruction_sets.h"

namespace penstock::kernels {
namespace {

using testing::GuardedMemory;

void Draw(std::mt19937& random, const GuardedMemory& memory, size_t count) {
  std::generate_n(memory.data(), count, [&] {
    const auto value = random();
    return static_cast<uint8_t>(value % 5 == 0 ? 0 : value % 5 == 1 ? 255 : value >> 8);
  });
}

// Of either sign, up to 0.31: five of them make less than 2.
int32_t DrawWeight(std::mt19937& random) {
  return static_cast<int32_t>(random() % 1'600'000) - 300'000;
}

TEST_CASE("Weighted sums of rows of bytes") {
  std::mt19937 random(9);
  testing::ForEachInstructionSet([&](const char*) {
    for (size_t num_rows = 0; num_rows < 6; ++num_rows) {
      for (size_t count = 0; count < 150; ++count) {
        CAPTURE(num_rows, count);
        std::deque<GuardedMemory> memory;
        std::vector<const uint8_t*> rows;
        std::vector<int32_t> weights;
        for (size_t k = 0; k < num_rows; ++k) {
          Draw(random, memory.emplace_back(count), count);
          rows.push_back(memory.back().data());
          weights.push_back(DrawWeight(random));
        }
        const GuardedMemory out(count);
        std::vector<uint8_t> want(count);
        SumByteRowsScalar(rows.data(), weights.data(), num_rows, count, want.data());
        SumByteRows(rows.data(), weights.data(), num_rows, count, out.data());
        REQUIRE(out.BeginsWith(want));
      }
    }
  });
}

TEST_CASE("Weighted sums of pixels of bytes") {
  std::mt19937 random(10);
  testing::ForEachInstructionSet([&](const char*) {
    for (size_t channels = 1; channels < 8; ++channels) {
      for (const size_t width_in : {1, 2, 5, 31}) {
        for (const size_t width_out : {0, 1, 2, 3, 17}) {
          CAPTURE(channels, width_in, width_out);
          const size_t behind = channels == 3 ? 1 : 0;
          const GuardedMemory line(width_in * channels + behind);
          Draw(random, line, width_in * channels + behind);
          const size_t span = 1 + random() % 5;
          std::vector<int64_t> starts, counts;
          std::vector<int32_t> weights(width_out * span);
          for (int32_t& weight : weights) weight = DrawWeight(random);
          for (size_t x = 0; x < width_out; ++x) {
            starts.push_back(static_cast<int64_t>(random() % width_in));
            const int64_t most = std::min<int64_t>(static_cast<int64_t>(span),
                                                   static_cast<int64_t>(width_in) - starts[x]);
            counts.push_back(static_cast<int64_t>(random() % static_cast<uint64_t>(most + 1)));
          }
          const ByteSpans spans = {span, starts.data(), counts.data(), weights.data()};
          const GuardedMemory out(width_out * channels + behind);
          std::vector<uint8_t> want(width_out * channels);
          SumBytePixelsScalar(line.data(), channels, spans, width_out, want.data());
          SumBytePixels(line.data(), channels, spans, width_out, out.data());
          REQUIRE(out.BeginsWith(want));
        }
      }
    }
  });
}

}  // namespace
}  // namespace penstock::kernels
